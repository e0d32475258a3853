"""Every pod of a stack against Kubernetes' Pod Security level `baseline`: what deviates, and that docs say why."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from infra.provider.kubernetes_api import KubernetesApi
from infra.provider.resource import ResourceError
from tests.cluster.test_strict_validation import BASE, EXISTING, manifests
from tests.shell import ROOT
from tools.rehearsal.cluster import SimulatedCluster

DOCS = ROOT / "docs" / "reference" / "kubernetes-objects.md"
MI325X = BASE | {"weights": {"mode": "nfs", "revision": "a" * 40, "nfs": {"server": "10.0.0.2", "path": "/w"}}}
PLAIN_CPU = BASE | {"platform": "cpu", "cluster": EXISTING | {"profile": "kind"}, "fabric": {"gate": "off"}}
# The names of the API server's checks (k8s.io/pod-security-admission, policy/check_*.go) in what it says.
CHECKS = ("host namespaces", "hostPath volumes", "hostPort", "non-default capabilities", "privileged", "procMount")
CHECKS += ("seccompProfile", "seLinuxOptions", "forbidden sysctls", "forbidden AppArmor profiles", "hostProcess")


@pytest.fixture(scope="module")
def baseline(cluster: SimulatedCluster) -> Iterator[str]:
    """A namespace that takes no pod that is not of level `baseline`."""
    api = KubernetesApi(str(cluster.outside_kubeconfig))
    level = {"pod-security.kubernetes.io/enforce": "baseline"}
    made = api.post("/api/v1/namespaces", {"metadata": {"generateName": "baseline-", "labels": level}})
    name = made["metadata"]["name"]
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


def pods(settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Component -> spec, of every pod that a stack of these settings brings."""
    found: dict[str, dict[str, Any]] = {}
    for template in (template for manifest in manifests(settings) for template in _templates(manifest)):
        found[template["metadata"]["labels"]["app.kubernetes.io/component"]] = template["spec"]
    return found


def deviations(spec: dict[str, Any], namespace: str, api: KubernetesApi) -> set[str]:
    """The checks that the API server says a pod fails; it makes none."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "pod-"}, "spec": spec}
    try:
        api.post(f"/api/v1/namespaces/{namespace}/pods", pod, dryRun="All")
    except ResourceError as error:
        said = str(error)
        assert 'violates PodSecurity "baseline' in said, said
        found = {check for check in CHECKS if check in said}
        assert found, f"a check that is none of {CHECKS}: {said}"
        return found
    return set()


def documented() -> dict[str, set[str]]:
    """Component -> checks that the docs give a reason for."""
    table = DOCS.read_text().split("## Pod Security", 1)[1].split("\n## ", 1)[0]
    found: dict[str, set[str]] = {}
    for components, check, reason in re.findall(r"^\| (`.+?`) \| ([^|`]+?) \| (.+?) \|$", table, re.MULTILINE):
        assert len(reason) > 20, f"{check}: {reason}"
        for component in re.findall(r"`(.+?)`", components):
            found.setdefault(component, set()).add(check)
    return found


def test_what_deviates_is_what_the_docs_give_a_reason_for(cluster: SimulatedCluster, baseline: str) -> None:
    api = KubernetesApi(str(cluster.outside_kubeconfig))
    specs = pods(MI325X)
    assert specs.keys() == {"engine", "head", "fabric-inspector", "rdma-gate", "benchmark", "weights"}
    found = {component: deviations(spec, baseline, api) for component, spec in specs.items()}
    for component, checks in sorted(found.items()):
        print(f"{component}: {', '.join(sorted(checks)) or 'baseline'}")
    assert {component: checks for component, checks in found.items() if checks} == documented()


def test_a_stack_without_gpus_and_directories_of_nodes_is_baseline(cluster: SimulatedCluster, baseline: str) -> None:
    api = KubernetesApi(str(cluster.outside_kubeconfig))
    for component, spec in pods(PLAIN_CPU).items():
        assert deviations(spec, baseline, api) == set(), component


def test_the_fallback_is_seen_for_what_it_is(cluster: SimulatedCluster, baseline: str) -> None:
    api = KubernetesApi(str(cluster.outside_kubeconfig))
    engine = pods(MI325X | {"security": {"privileged": True}})["engine"]
    assert "privileged" in deviations(engine, baseline, api)


def _templates(value: Any) -> Iterator[dict[str, Any]]:
    """Every pod template somewhere in a manifest."""
    if isinstance(value, dict):
        if "containers" in value.get("spec", {}) and "labels" in value.get("metadata", {}):
            yield value
        for item in value.values():
            yield from _templates(item)
    elif isinstance(value, list):
        for item in value:
            yield from _templates(item)
