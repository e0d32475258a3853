"""The claim of an earlier life of the stack: it stays when the stack goes, and what it is it mostly stays."""

from infra.provider.kubernetes_api import Json
from infra.provider.preflight.facts import Facts
from infra.provider.preflight.names import CLAIM
from infra.provider.preflight.quantities import quantity
from infra.provider.resource import Properties
from serving.kubernetes_names import RESULTS


def lacks(inputs: Properties, facts: Facts) -> list[str]:
    """One line at most: another StorageClass, a smaller volume, or a larger one that nobody can make of it."""
    claim = facts.named.get(CLAIM)
    if claim is None:
        return []
    it = f"storage: the claim {RESULTS} in namespace {inputs['namespace']}"
    otherwise = "or delete the claim with the runs on it"
    name = claim["spec"].get("storageClassName")
    if name and inputs["storageClass"] not in ("", name):
        return [f"{it} has StorageClass {name!r} for good; set cluster.nodes.storageClass to it, {otherwise}"]
    size = _size(claim)
    fix = f"set results.size to {size}"
    if quantity(inputs["resultsSize"]) < quantity(size):
        return [f"{it} has {size} and cannot shrink to {inputs['resultsSize']}; {fix} or more, {otherwise}"]
    if quantity(inputs["resultsSize"]) == quantity(size):
        return []
    # ValidatePersistentVolumeClaimUpdate of Kubernetes: a spec does not change before the claim is bound.
    if claim.get("status", {}).get("phase") != "Bound":
        return [f"{it} has no volume yet, and {size} until it has one; {fix}, {otherwise}"]
    if _grows(name, facts.storage_classes) is False:
        return [f"{it} has {size}, and StorageClass {name!r} does not let volumes grow; {fix}, {otherwise}"]
    return []


def _size(claim: Json) -> str:
    """The larger of what was asked for and what it has."""
    asked = claim["spec"]["resources"]["requests"]["storage"]
    has = claim.get("status", {}).get("capacity", {}).get("storage", asked)
    return max(asked, has, key=quantity)


def _grows(name: str | None, classes: list[Json] | None) -> bool | None:
    """Whether a class allows it; None where that is not known."""
    found = [entry for entry in classes or [] if entry["metadata"]["name"] == name]
    return bool(found[0].get("allowVolumeExpansion")) if found else None
