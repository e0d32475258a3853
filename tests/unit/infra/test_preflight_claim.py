"""The claim that an earlier life of the stack left: what of it cannot become what is asked for, in a line."""

from typing import Any

import pytest
from preflight_facts import INPUTS, Json, facts

from infra.provider.preflight import claim
from infra.provider.preflight.names import CLAIM

FAST, FIXED = (
    {"metadata": {"name": name}, "allowVolumeExpansion": grows} for name, grows in (("fast", True), ("fixed", None))
)


def left(size: str = "20Gi", *, has: str = "", name: str = "fast", phase: str = "Bound") -> dict[str, Json]:
    spec = {"storageClassName": name, "resources": {"requests": {"storage": size}}}
    return {CLAIM: {"spec": spec, "status": {"phase": phase, "capacity": {"storage": has or size}}}}


def lacks(named: dict[str, Any], **inputs: Any) -> list[str]:
    return claim.lacks({**INPUTS, **inputs}, facts(named=named, storage_classes=[FAST, FIXED]))


def test_without_one_and_with_the_same_one_nothing_lacks() -> None:
    assert lacks({CLAIM: None}) == []
    assert lacks(left()) == []
    assert lacks(left("20480Mi")) == []
    assert lacks(left(phase="Pending", name="fixed")) == []


def test_a_claim_keeps_its_storage_class() -> None:
    assert lacks(left(), storageClass="fast") == []
    [line] = lacks(left(), storageClass="slow")
    assert "'fast'" in line
    assert "cluster.nodes.storageClass" in line


@pytest.mark.parametrize(
    ("named", "wanted", "words"),
    [
        (left("40Gi"), "20Gi", ("has 40Gi and cannot shrink to 20Gi", "set results.size to 40Gi or more")),
        (left("20Gi", has="30Gi"), "25Gi", ("has 30Gi and cannot shrink", "results.size to 30Gi")),
        (left(name="fixed"), "40Gi", ("'fixed' does not let volumes grow", "results.size to 20Gi")),
        (left(phase="Pending"), "40Gi", ("has no volume yet", "results.size to 20Gi")),
    ],
)
def test_what_the_claim_cannot_become_is_said(named: dict[str, Json], wanted: str, words: tuple[str, ...]) -> None:
    [line] = lacks(named, resultsSize=wanted)
    assert all(word in line for word in (*words, "delete the claim with the runs on it"))


def test_a_volume_that_can_grow_grows() -> None:
    assert lacks(left(), resultsSize="40Gi") == []
    # Whether an unknown class can is for the API to say.
    assert claim.lacks({**INPUTS, "resultsSize": "40Gi"}, facts(named=left(), storage_classes=None)) == []
