"""Which names and namespaces somebody else has already, and whether every name of the program is looked at."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest
from preflight_facts import CHART, INPUTS, Json, facts
from registrations import Registration, program_registers, stack

from infra.kubernetes_program import deploy_on_kubernetes
from infra.provider.preflight import names
from serving.kubernetes_names import POD_SECURITY as LEVEL
from serving.kubernetes_names import WEIGHTS, labels

INSTANCE = "app.kubernetes.io/instance"


def labelled(instance: str, **spec: str) -> Json:
    labels = {"app.kubernetes.io/name": "pd-mi325x", "app.kubernetes.io/instance": instance}
    return {"metadata": {"labels": labels}, "spec": spec}


def test_nothing_of_somebody_else_is_taken_over() -> None:
    """Server-side apply would write into it, and `destroy` delete it."""
    mine = {"ConfigMap benchmark-target": labelled(INPUTS["stack"]), "CronJob benchmark": None}
    assert names.lacks(INPUTS, facts(named=mine)) == []
    theirs = {**mine, "Service llm-metrics": {"metadata": {}}, "CronJob benchmark": labelled("other")}
    [line] = names.lacks(INPUTS, facts(named=theirs))
    assert "Service llm-metrics, CronJob benchmark" in line or "CronJob benchmark, Service llm-metrics" in line
    assert "pd-mi325x:namespace" in line


def test_a_namespace_of_another_stack() -> None:
    [line] = names.lacks(INPUTS, facts(namespace=labelled("other")))
    assert "belongs to stack other" in line
    assert names.lacks(INPUTS, facts(namespace=labelled(INPUTS["stack"]))) == []
    assert names.lacks(INPUTS, facts(namespace={"metadata": {"labels": {"team": "a"}}})) == []


@pytest.mark.parametrize(
    ("labels", "refused"),
    [
        ({}, False),
        ({LEVEL: "privileged"}, False),
        ({LEVEL: "restricted"}, True),
        # The stack's own, of an earlier life with other settings: it is set anew.
        ({LEVEL: "baseline", "app.kubernetes.io/name": "pd-mi325x", INSTANCE: INPUTS["stack"]}, False),
    ],
)
def test_a_level_of_security_that_somebody_else_chose_is_not_overruled(labels: dict[str, str], refused: bool) -> None:
    lines = names.lacks(INPUTS, facts(namespace={"metadata": {"name": "space", "labels": labels}}))
    assert bool(lines) == refused
    if lines:
        assert f"kubectl label --overwrite namespace space {LEVEL}=privileged" in lines[0]


def test_a_label_that_was_changed_can_be_put_back() -> None:
    """Another namespace, or to remove the RayService, would cost the model that serves."""
    stack, space = INPUTS["stack"], INPUTS["namespace"]
    through = {**INPUTS, "kubeconfig": "/a file", "context": "here"}
    changed = {"RayService llm": labelled("other"), "CronJob benchmark": labelled("x")}
    [line] = names.lacks(through, facts(namespace=labelled(stack), named=changed))
    assert "RayService llm, CronJob benchmark in namespace space is not this stack's" in line
    command = (
        f"--namespace {space} label --overwrite rayservice/llm cronjob/benchmark app.kubernetes.io/instance={stack}"
    )
    assert f"`kubectl --kubeconfig '/a file' --context here {command}`" in line
    assert "secret: " not in str(names.lacks({**INPUTS, "kubeconfig": "secret: x\n"}, facts(named=changed)))
    for namespace in (None, {"metadata": {}}, {"metadata": {"labels": {"app.kubernetes.io/instance": stack}}}):
        [line] = names.lacks(through, facts(namespace=namespace, named=changed))
        assert "label --overwrite" not in line, "they may be another stack's"


def test_a_namespaces_own_label_can_be_put_back() -> None:
    stack = INPUTS["stack"]
    mine = {"RayService llm": labelled(stack)}
    [line] = names.lacks(INPUTS, facts(namespace=labelled("other"), named=mine))
    assert f"`kubectl label --overwrite namespace/space app.kubernetes.io/instance={stack}`" in line
    [line] = names.lacks(INPUTS, facts(namespace=labelled("other"), named={"RayService llm": labelled("other")}))
    assert "label --overwrite" not in line
    apart = facts(operator_namespace=operator_home("other", "ray-operator"), own_operator="kuberay")
    [line] = names.lacks({**INPUTS, **CHART}, apart)
    both = f"app.kubernetes.io/instance={stack} app.kubernetes.io/component=ray-operator"
    assert f"`kubectl label --overwrite namespace/kuberay {both}`" in line


def operator_home(*label: str) -> Json:
    return {"metadata": {"labels": labels(*label) if label else {"team": "a"}}}


@pytest.mark.parametrize(
    ("there", "refused"),
    [
        (None, False),
        (operator_home(INPUTS["stack"], "ray-operator"), False),  # from the last update
        (operator_home(), True),
        (operator_home("other", "ray-operator"), True),
        (operator_home(INPUTS["stack"], "namespace"), True),  # where this stack was before, with its results
    ],
)
def test_an_operators_namespace_that_destroy_may_not_delete(there: Json | None, refused: bool) -> None:
    lines = names.lacks({**INPUTS, **CHART}, facts(operator_namespace=there))
    assert len(lines) == refused
    assert "label --overwrite" not in str(lines)
    assert all("namespace kuberay, which rayOperator.namespace names" in line for line in lines)
    assert names.lacks(INPUTS, facts(operator_namespace=there)) == [], "preinstalled: nothing is made there"
    home = {"rayOperator": {**CHART["rayOperator"], "namespace": INPUTS["namespace"]}}
    assert names.lacks({**INPUTS, **home}, facts(operator_namespace=there)) == [], "the stack's own stays"


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setattr(pulumi, "get_root_directory", lambda: tmp_path)
    yield
    pulumi.runtime.settings.reset_options()


@pytest.mark.usefixtures("kubeconfig")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"huggingFaceToken": "hf_x", "monitoring": "prometheus-operator", "weights": {"mode": "dummy"}},
        {
            "cluster": {
                "provider": "existing",
                "nodes": {"network": "multus", "hostDevices": {"fabric0": "eth1", "fabric1": "eth2"}},
            },
            "fabric": {"gate": "off"},
        },
        {"weights": {"mode": "nfs", "revision": "a" * 40, "nfs": {"server": "10.0.0.5", "path": "/x"}}},
    ],
)
def test_every_name_that_the_program_makes_is_looked_at(settings: dict[str, Any]) -> None:
    """But for those that say what is in the object, and change with it."""
    chosen = stack(namespace="pd-space", rayOperator={"install": "preinstalled"}, **settings)
    seen = program_registers(lambda: deploy_on_kubernetes(chosen))
    inputs = next(it.inputs for it in seen if it.type == "pd:index:ClusterPreflight")
    made = {_name(it) for it in seen if it.inputs.get("metadata", {}).get("namespace") == "pd-space"}
    fixed = {name for name in made if not name.partition(" ")[2].startswith(f"{WEIGHTS}-")}
    assert len(fixed) >= 5
    # The token's secret is asked for by every stack: whether one is set is no input of the check.
    assert fixed == names.paths(inputs).keys() - ({"Secret hugging-face-token"} - made)
    # The wait for the service has to come after all of them: it says which are gone.
    ready = next(it for it in seen if it.type == "pd:index:RayServiceReady")
    assert ready.inputs["objects"].keys() == {*fixed, "Namespace pd-space"}
    before = {it.name for it in seen if _name_or_none(it) in fixed} | {"namespace"}
    assert before <= _all_before(ready, seen)


def _all_before(last: Registration, seen: list[Registration]) -> set[str]:
    """The names of what a resource depends on, directly or through others."""
    found, todo = set[str](), [*last.depends_on]
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            todo += [other for it in seen if it.name == name for other in it.depends_on]
    return found


def _name_or_none(seen: Registration) -> str | None:
    return _name(seen) if "name" in seen.inputs.get("metadata", {}) else None


def _name(seen: Registration) -> str:
    return f"{seen.inputs.get('kind', seen.kind)} {seen.inputs['metadata']['name']}"
