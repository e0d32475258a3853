"""What else a cluster has to have: a recent release, a usable namespace, the Prometheus operator, storage."""

import re

from infra.provider.preflight.facts import PROMETHEUS, Facts
from infra.provider.resource import Properties

# KubeRay's definitions hold CEL rules (ray.io_rayservices.yaml, v1.6), which API servers know by default from v1.25
# on; the pod security labels of the stack's namespace are enforced from the same release on.
_MINIMUM = (1, 25)
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def version(inputs: Properties, facts: Facts) -> list[str]:
    """The server's release. Some providers append to the minor (`34+`)."""
    numbers = [re.match(r"\d+", str(facts.version.get(part, ""))) for part in ("major", "minor")]
    found = tuple(int(number[0]) for number in numbers if number)
    if len(found) < len(_MINIMUM):
        return ["version: the API server does not say which Kubernetes it is; check `server` in the kubeconfig"]
    if found >= _MINIMUM:
        return []
    return [
        f"version: Kubernetes v{found[0]}.{found[1]} is too old, KubeRay's definitions need v{_MINIMUM[0]}."
        f"{_MINIMUM[1]}; upgrade the cluster"
    ]


def namespace(inputs: Properties, facts: Facts) -> list[str]:
    """The stack's namespace may be there or not, but not on its way out: then nothing can be made in it."""
    if facts.namespace is None or facts.namespace.get("status", {}).get("phase") != "Terminating":
        return []
    conditions = facts.namespace["status"].get("conditions") or []
    held = [
        str(it.get("message")) for it in conditions if it.get("status") == "True" and it["type"].endswith("Remaining")
    ]
    why = f" ({' '.join('; '.join(held).split())})" if held else ""
    return [
        f"namespace {inputs['namespace']} is being deleted{why}; wait until it is gone, or set pd-mi325x:namespace to "
        "another"
    ]


def pull_secret(inputs: Properties, facts: Facts) -> list[str]:
    """The secret that images are pulled with. It is the user's: the stack does not make it."""
    denied = {(access.resource, access.verb) for access in facts.denied}
    if not inputs["pullSecret"] or facts.pull_secret is not None or ("secrets", "get") in denied:
        return []
    home, name = inputs["namespace"], inputs["pullSecret"]
    return [
        f"images: no secret {name} in namespace {home} to pull them with; make the namespace if it is not there, and "
        f"`kubectl --namespace {home} create secret docker-registry {name} ...`, or leave out images.pullSecret"
    ]


def monitoring(inputs: Properties, facts: Facts) -> list[str]:
    """The Prometheus operator, when it is to find the stack."""
    if inputs["monitoring"] != "prometheus-operator" or "podmonitors" in facts.served.get(PROMETHEUS, set()):
        return []
    return [
        f"monitoring: the API does not serve podmonitors ({PROMETHEUS}); install the Prometheus operator, or set "
        "monitoring: annotations"
    ]


def storage(inputs: Properties, facts: Facts) -> list[str]:
    """A storage class for the volume of results."""
    if facts.storage_classes is None:
        return []
    classes = {entry["metadata"]["name"]: entry["metadata"].get("annotations") or {} for entry in facts.storage_classes}
    there = f"there are: {', '.join(sorted(classes))}" if classes else "there is none at all"
    if (wanted := inputs["storageClass"]) and wanted not in classes:
        return [f"storage: no StorageClass {wanted!r}, {there}; set cluster.nodes.storageClass"]
    if wanted or any(notes.get(key) == "true" for notes in classes.values() for key in _DEFAULT_CLASS):
        return []
    return [f"storage: no default StorageClass, {there}; set cluster.nodes.storageClass, or make one the default"]
