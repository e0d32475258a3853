"""The inspector's DaemonSet, and the command that its pods run."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fabric_tree import build
from rendered_services import IMAGES, of_profile, stack

from serving.fabric.node import NodeFabric
from serving.fabric_inspector import inspector_spec
from serving.stack_files import ROOT


def test_its_pods_may_do_nothing_and_ask_for_no_device() -> None:
    pods = inspector_spec(stack(), "pd-test")
    spec = pods["template"]["spec"]
    (container,) = spec["containers"]
    assert container["image"] == IMAGES["engine"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    asked = container["resources"]["requests"] | container["resources"]["limits"]
    assert asked.keys() == {"cpu", "memory"}
    mounts = {mount["mountPath"]: mount["readOnly"] for mount in container["volumeMounts"]}
    assert mounts == {"/boot": True, "/dev/dri": True}
    assert pods["selector"]["matchLabels"] == pods["template"]["metadata"]["labels"]


@pytest.mark.parametrize("profile", ["doks", "nvidia-network-operator", "tensorwave"])
def test_it_goes_where_engines_go_and_sees_the_nodes_network(profile: str) -> None:
    settings = of_profile(profile)
    spec = inspector_spec(settings, "pd-test")["template"]["spec"]
    assert spec["hostNetwork"] is True
    assert spec.get("nodeSelector", {}) == settings.profile.node_selector
    assert [it["key"] for it in spec["tolerations"]] == [it.key for it in settings.profile.tolerations]


def test_it_says_one_line_and_ends_at_once_when_it_has_to(tmp_path: Path) -> None:
    (words,) = [it["command"] for it in inspector_spec(stack(), "s")["template"]["spec"]["containers"]]
    assert words[0] == "python"
    command = [sys.executable, *words[1:], "--root", str(build(tmp_path, "doks"))]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        line = process.stdout.readline()
        assert process.poll() is None, "a pod that ends is started again"
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
        assert process.stdout.read() == ""
    assert NodeFabric.model_validate_json(line).devices[1].name == "mlx5_2"
    assert json.loads(line)["choice"]["gid_index"] == 3
