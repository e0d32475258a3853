"""A kubeconfig with several contexts, of which somebody makes another one the current one."""

import yaml

from tests.cluster.conftest import ClusterShell
from tests.cluster.deployment import api_of, pods, write_stack
from tests.shell import assert_one_clear_line

NAME, MINE, OTHER = "context", "simulated", "elsewhere"
FILE = "config"  # counted from the project's folder, though the program runs in infra/


def use_context(shell: ClusterShell, name: str) -> None:
    assert shell.run(f"kubectl config --kubeconfig {FILE} use-context {name}").ok


def test_a_stack_stays_where_it_is(shell: ClusterShell) -> None:
    """Without the name in the state, `destroy` finds nothing in the other cluster, and says that all is gone."""
    document = yaml.safe_load(shell.cluster.kubeconfig.read_text())
    nowhere = {**document["clusters"][0]["cluster"], "server": "https://127.0.0.1:1"}
    document["clusters"].append({"name": OTHER, "cluster": nowhere})
    document["contexts"].append({"name": OTHER, "context": {"cluster": OTHER, "user": "user"}})
    (shell.checkout / FILE).write_text(yaml.safe_dump(document))
    cluster = {"provider": "existing", "kubeconfig": FILE}
    write_stack(shell, NAME, shipped="pd-1p1d", cluster=cluster)
    up = shell.run("pulumi up --yes --skip-preview", 300)
    assert up.ok, up.text
    use_context(shell, OTHER)
    for command in ("preview", "up --yes"):
        refused = shell.run(f"pulumi {command}")
        assert_one_clear_line(refused, f"deployed through context '{MINE}'", f"is '{OTHER}'", "set cluster.context")
    # Somebody who says that they want the other one is not kept from it, but by what is wrong with it.
    write_stack(shell, NAME, cluster={**cluster, "context": OTHER})
    assert_one_clear_line(shell.run("pulumi preview"), "https://127.0.0.1:1", "cannot be reached")
    write_stack(shell, NAME, cluster={**cluster, "context": MINE})
    assert shell.run("pulumi preview").ok
    write_stack(shell, NAME, cluster=cluster)

    api = api_of(shell)
    assert pods(api, NAME, "engine") != []
    destroy = shell.run("pulumi destroy --yes --skip-preview", 300)
    assert destroy.ok, destroy.text
    assert f"--context {MINE} delete namespace/{NAME}" in destroy.text, destroy.text
    assert api.list(f"/apis/ray.io/v1/namespaces/{NAME}/rayservices") == []
    assert pods(api, NAME, "engine") == []
    assert shell.run(f"kubectl delete namespace {NAME} --wait").ok
