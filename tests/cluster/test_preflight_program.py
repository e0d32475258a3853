"""The checks from the shell: the whole program, and one that gets the content of a kubeconfig."""

import time
from pathlib import Path

import yaml

from tests.cluster.conftest import ClusterShell
from tests.cluster.deployment import write_stack
from tests.shell import assert_one_clear_line


def test_a_preview_of_the_whole_program(shell: ClusterShell) -> None:
    write_stack(shell, "short", topology="4p1d")
    start = time.monotonic()
    preview = shell.run("pulumi preview")
    assert_one_clear_line(preview, "nodes: needs 5 nodes with 8 free amd.com/gpu", "4 have them")
    assert time.monotonic() - start < 30, "measured on a busy machine; 10 s are the aim on an idle one"


_PROGRAM = """
from pathlib import Path
import pulumi
from infra.cluster.access import KubernetesAccess
from infra.cluster_preflight import ClusterPreflight
from infra.kept_objects import KeptObjects, kept_of
from infra.settings import read_settings
from serving.stack import Stack

stack = read_settings()
assert isinstance(stack, Stack)
access = KubernetesAccess(pulumi.Output.secret(Path("{kubeconfig}").read_text()))
ClusterPreflight("preflight", stack, "content", "default", access)
KeptObjects("kept", "content", access, kept_of(stack, "default"), namespace="default", cluster_goes=False)
"""


def test_the_content_of_a_kubeconfig_stays_secret(shell: ClusterShell) -> None:
    token = yaml.safe_load(shell.cluster.kubeconfig.read_text())["users"][0]["user"]["token"]
    write_stack(shell, "content", topology="1p1d")
    (shell.checkout / "infra" / "__main__.py").write_text(_PROGRAM.format(kubeconfig=shell.cluster.kubeconfig))
    for command in ("up --yes", "refresh --yes", "preview --diff", "stack export"):
        answer = shell.run(f"pulumi {command}")
        assert answer.ok, answer.text
        for clear in (token, "current-context"):
            assert clear not in answer.text, command
    backend = Path(shell.env["PULUMI_BACKEND_URL"].removeprefix("file://"))
    for file in (file for file in backend.rglob("*") if file.is_file()):
        assert token.encode() not in file.read_bytes(), file
    destroy = shell.run("pulumi destroy --yes")
    assert destroy.ok, destroy.text
    assert "delete namespace" not in destroy.text  # `default` was there before the stack
