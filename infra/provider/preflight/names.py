"""Whose the namespace and the objects in it are. Pulumi's server-side apply takes over what has the right name."""

import shlex

from infra.provider.kubeconfig import is_content
from infra.provider.kubernetes_api import Json
from infra.provider.preflight.facts import ATTACHMENTS, PROMETHEUS, RAY, Facts, operator_apart
from infra.provider.resource import Properties
from serving.dashboards import dashboards
from serving.kubernetes_names import (
    BENCHMARK,
    BENCHMARK_TARGET,
    FABRIC_INSPECTOR,
    HUGGING_FACE_TOKEN,
    METRICS_SERVICE,
    OPERATOR,
    POD_SECURITY,
    RAY_SERVICE,
    RESULTS,
    dashboard_name,
)

_INSTANCE = "app.kubernetes.io/instance"
_COMPONENT = "app.kubernetes.io/component"
_OURS = ("app.kubernetes.io/name", "pd-mi325x")
CLAIM = f"PersistentVolumeClaim {RESULTS}"


def paths(inputs: Properties) -> dict[str, str]:
    """What this stack will make under a name that does not say whose it is -> where it would be."""
    home = f"namespaces/{inputs['namespace']}"
    core = f"/api/v1/{home}"
    made = {
        f"RayService {RAY_SERVICE}": f"/apis/{RAY}/{home}/rayservices/{RAY_SERVICE}",
        f"Service {METRICS_SERVICE}": f"{core}/services/{METRICS_SERVICE}",
        f"ConfigMap {BENCHMARK_TARGET}": f"{core}/configmaps/{BENCHMARK_TARGET}",
        f"Secret {HUGGING_FACE_TOKEN}": f"{core}/secrets/{HUGGING_FACE_TOKEN}",
        CLAIM: f"{core}/persistentvolumeclaims/{RESULTS}",
        f"CronJob {BENCHMARK}": f"/apis/batch/v1/{home}/cronjobs/{BENCHMARK}",
    }
    if inputs["inspectsFabric"]:
        made[f"DaemonSet {FABRIC_INSPECTOR}"] = f"/apis/apps/v1/{home}/daemonsets/{FABRIC_INSPECTOR}"
    for name in inputs["hostDevices"]:
        path = f"/apis/{ATTACHMENTS}/{home}/network-attachment-definitions/{name}"
        made[f"NetworkAttachmentDefinition {name}"] = path
    if inputs["monitoring"] == "prometheus-operator":
        made[f"PodMonitor {RAY_SERVICE}"] = f"/apis/{PROMETHEUS}/{home}/podmonitors/{RAY_SERVICE}"
        made |= {f"ConfigMap {name}": f"{core}/configmaps/{name}" for name in map(dashboard_name, dashboards())}
    return made


def lacks(inputs: Properties, facts: Facts) -> list[str]:
    """A namespace for the operator that is somebody else's, and one line at most about the stack's own."""
    return [*_operator_namespace(inputs, facts), *_namespace(inputs, facts)]


def _operator_namespace(inputs: Properties, facts: Facts) -> list[str]:
    """`pulumi destroy` deletes it with all that is in it, so it has to be of this stack's making."""
    operator, labels = inputs["rayOperator"], _labels(facts.operator_namespace)
    if not operator_apart(inputs) or facts.operator_namespace is None:
        return []
    if (labels.get(_INSTANCE), labels.get(_COMPONENT)) == (inputs["stack"], OPERATOR):
        return []
    # Recorded by the last update as where this stack installed the operator.
    again = {_INSTANCE: inputs["stack"], _COMPONENT: OPERATOR}
    own = facts.own_operator == operator["namespace"]
    return [
        f"namespace {operator['namespace']}, which rayOperator.namespace names, is there and not this stack's: destroy "
        "would delete it; set rayOperator.namespace to one that is not there, or leave it out"
        f"{_labelled_again(inputs, [f'Namespace {operator["namespace"]}'], again) if own else ''}"
    ]


def _namespace(inputs: Properties, facts: Facts) -> list[str]:
    """A namespace of another stack, else objects of somebody else in it, else a level of security that is not ours."""
    other = "set pd-mi325x:namespace to another one"
    labels = _labels(facts.namespace)
    if labels.get(_OURS[0]) == _OURS[1] and labels.get(_INSTANCE) not in (None, inputs["stack"]):
        mine = any(_labels(there).get(_INSTANCE) == inputs["stack"] for there in facts.named.values())
        put_back = _labelled_again(inputs, [f"Namespace {inputs['namespace']}"]) if mine else ""
        return [f"namespace {inputs['namespace']} belongs to stack {labels[_INSTANCE]}; {other}{put_back}"]
    foreign = [
        name for name, there in facts.named.items() if there and _labels(there).get(_INSTANCE) != inputs["stack"]
    ]
    if foreign:
        # In a namespace of this stack's, into which no other stack of this project would have deployed.
        mine = (labels.get(_OURS[0]), labels.get(_INSTANCE)) == (_OURS[1], inputs["stack"])
        return [
            f"names: {', '.join(foreign)} in namespace {inputs['namespace']} is not this stack's and would be "
            f"overwritten; {other}, or remove it{_labelled_again(inputs, foreign) if mine else ''}"
        ]
    level = labels.get(POD_SECURITY)
    if labels.get(_OURS[0]) != _OURS[1] and level not in (None, inputs["podSecurity"]):
        wanted = f"{POD_SECURITY}={inputs['podSecurity']}"
        return [
            f"namespace {inputs['namespace']} has {POD_SECURITY}: {level}, and this stack's pods need "
            f"{inputs['podSecurity']}; `kubectl label --overwrite namespace {inputs['namespace']} {wanted}`, or {other}"
        ]
    return []


def _labelled_again(inputs: Properties, names: list[str], labels: dict[str, str] | None = None) -> str:
    """The end of a line about what may well be this stack's, with a label that somebody changed.

    The other remedies would take a model that serves away. names: `Kind name`, all namespaced or all namespaces.
    """
    file, context = inputs.get("kubeconfig") or "", inputs.get("context") or ""
    words = ["kubectl", *(["--kubeconfig", file] if file and not is_content(file) else [])]
    words += ["--context", context] if context else []
    objects = [f"{kind.lower()}/{name}" for kind, name in (text.split(" ", 1) for text in names)]
    words += [] if names[0].startswith("Namespace ") else ["--namespace", inputs["namespace"]]
    changed = [f"{key}={value}" for key, value in (labels or {_INSTANCE: inputs["stack"]}).items()]
    command = shlex.join([*words, "label", "--overwrite", *objects, *changed])
    return f"; if it is this stack's and somebody changed its label, put that back, which keeps it running: `{command}`"


def _labels(there: Json | None) -> dict[str, str]:
    return (there or {}).get("metadata", {}).get("labels") or {}
