"""A DOKS stack through the real engine, from the shell, with a stand-in for DigitalOcean's provider."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.shell import ROOT, Answer, Shell, assert_one_clear_line
from tools.rehearsal import stand_in_plugins

PROGRAM = """
import pulumi
from infra.cluster.doks import DoksCluster
from serving.cluster import DoksCluster as Settings
from serving.errors import ConfigError

config = pulumi.Config()
settings = Settings.model_validate({"provider": "doks", **(config.get_object("cluster") or {})})
# The stack file takes an hour and more; nobody waits for that here.
settings = settings.model_copy(update={"kubeconfig_expire_seconds": config.get_int("expireSeconds") or 0})
try:
    cluster = DoksCluster("nodes", settings, config.get_int("nodes") or 2)
except ConfigError as error:
    pulumi.log.error(str(error))
    raise SystemExit(32) from None
pulumi.export("kubeconfig", cluster.access.kubeconfig)
"""
TOKEN = "dop_v1_the-users-own-token"
UP = "pulumi up --yes --skip-preview"
POOL = "kubernetesNodePool"


@dataclass
class Account:
    """A shell with a small Pulumi program, and what the stand-in has made."""

    shell: Shell
    state: Path

    def run(self, command: str) -> Answer:
        return self.shell.run(command)

    def good(self, command: str) -> str:
        answer = self.run(command)
        assert answer.ok, answer.text
        return answer.text

    def objects(self) -> dict[str, dict[str, Any]]:
        return json.loads((self.state / "objects.json").read_text())

    def one(self, kind: str) -> dict[str, Any]:
        (found,) = (entry for entry in self.objects().values() if entry["kind"] == kind)
        return found

    def faults(self, **faults: object) -> None:
        (self.state / "faults.json").write_text(json.dumps(faults))

    def kubeconfig(self) -> str:
        return self.good("pulumi stack output kubeconfig --show-secrets")

    def steps(self) -> dict[str, str]:
        """What a preview plans: resource name -> operation, without what stays."""
        found = json.loads(self.good("pulumi preview --json 2>/dev/null"))["steps"]
        return {step["urn"].split("::")[-1]: step["op"] for step in found if step["op"] != "same"}


@pytest.fixture
def account(tmp_path: Path) -> Account:
    program = tmp_path / "program"
    program.mkdir()
    (program / ".venv").symlink_to(ROOT / ".venv")
    (program / "Pulumi.yaml").write_text("name: pd-mi325x\nruntime: {name: python, options: {virtualenv: .venv}}\n")
    (program / "__main__.py").write_text(PROGRAM)
    shell = Shell(program, tmp_path / "home")
    stand_in_plugins.put_into(tmp_path / "home" / "pulumi")
    state = tmp_path / "state"
    state.mkdir()
    shell.env |= {
        "PD_REHEARSAL_STATE": str(state),
        "PD_REHEARSAL_KUBECONFIG": "",
        "DIGITALOCEAN_TOKEN": TOKEN,
    }
    shell.env.pop("DIGITALOCEAN_ACCESS_TOKEN", None)
    account = Account(shell, state)
    account.good("pulumi stack select --create pool")
    return account


def test_from_nothing_to_nothing(account: Account) -> None:
    account.good("pulumi config set expireSeconds 1")
    up = account.good("pulumi up --yes")
    export = account.good("pulumi stack export")
    first = account.kubeconfig()
    (secret,) = re.findall(r"token: (\S+)", first)
    for text in (up, export):
        assert secret not in text
        assert "apiVersion" not in text
        assert TOKEN not in text
    resources = {entry["urn"].split("::")[-1]: entry for entry in json.loads(export)["deployment"]["resources"]}
    assert resources["nodes-mi325x"]["customTimeouts"] == {"create": 5400, "update": 5400, "delete": 5400}

    # A newer patch release is on offer: no upgrade of what is there, which would recycle its nodes.
    version = account.one("kubernetesCluster")["inputs"]["version"]
    account.faults(versions=[version.replace("-do.0", "-do.9"), version])
    account.good("pulumi preview --expect-no-changes")

    account.good("pulumi config set nodes 3")
    assert account.steps() == {"nodes-mi325x": "update"}
    before = [node["name"] for node in account.one(POOL)["outputs"]["nodes"]]
    # The kubeconfig has expired meanwhile: a refresh of the cluster alone fetches one, the next update hands it on.
    account.good("pulumi refresh --yes --target '**:KubernetesCluster::**'")
    account.good(UP)
    assert account.kubeconfig() != first
    after = [node["name"] for node in account.one(POOL)["outputs"]["nodes"]]
    assert len(after) == 3
    assert after[:2] == before

    account.good("pulumi destroy --yes --skip-preview")
    assert account.objects() == {}


def test_what_went_wrong_is_put_right_by_the_next_update(account: Account) -> None:
    account.faults(fail={POOL: "creating this droplet will exceed your GPU limit"})
    assert_one_clear_line(account.run(UP), "creating this droplet will exceed your GPU limit")
    assert sorted(entry["kind"] for entry in account.objects().values()) == ["firewall", "kubernetesCluster", "vpc"]

    # Somebody deletes the firewall at the control panel, too.
    account.faults()
    left = {key: entry for key, entry in account.objects().items() if entry["kind"] != "firewall"}
    (account.state / "objects.json").write_text(json.dumps(left))
    account.good(f"{UP} --refresh")
    assert account.one("firewall")["inputs"]["tags"] == [f"k8s:{account.one(POOL)['inputs']['clusterId']}"]

    # Another region is another cluster: everything in it goes first, or ranges and nodes would be needed twice.
    old = account.one(POOL)["inputs"]["clusterId"]
    account.good("pulumi config set --path cluster.region nyc2")
    account.good(UP)
    assert {entry["inputs"].get("region") for entry in account.objects().values()} == {"nyc2", None}
    assert old not in account.objects()
    assert len(account.objects()) == 4


def test_without_a_token_nothing_is_made(account: Account) -> None:
    del account.shell.env["DIGITALOCEAN_TOKEN"]
    assert_one_clear_line(account.run(UP), "pd-mi325x:cluster.provider", "digitalocean:token", "DIGITALOCEAN_TOKEN")
    assert not (account.state / "objects.json").exists()
    account.good(f"pulumi config set --secret digitalocean:token {TOKEN}")
    account.good("pulumi preview")


def test_a_misspelt_argument_is_refused(account: Account) -> None:
    program = account.shell.checkout / "__main__.py"
    program.write_text(
        "import pulumi_digitalocean as do\n"
        "pool = {'name': 'system', 'size': 's-8vcpu-16gb-amd', 'node_count': 2, 'lables': {'a': 'b'}}\n"
        "do.KubernetesCluster('c', region='atl1', version='1', node_pool=pool)\n"
    )
    assert_one_clear_line(account.run("pulumi preview"), "nodePool.lables", "unexpected property", "labels")
