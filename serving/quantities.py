"""Settings that are quantities of the Kubernetes API: 132, 500m, 1062Gi."""

from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from serving.amounts import amount
from serving.settings_base import number_as_text

# Two processors of 256 cores with two threads each: more than a node has whose GPUs this repository knows.
_MOST_CPUS = 1024
_SMALLEST_CPU = Decimal("0.001")  # Kubernetes counts no less ("Resource Management for Pods and Containers")
# Of AWS (io2) and Google (Hyperdisk); DigitalOcean's is 16 TiB.
_LARGEST_VOLUME = 64 * 1024**4
_GIBIBYTE = 1024**3  # no engine, head or volume works with less; a smaller number is one whose unit was forgotten


def _more_than_nothing(quantity: str) -> str:
    """No pod or volume of ours works with none of anything, and a limit of 0 is no limit."""
    if not amount(quantity):
        raise ValueError("has to be more than 0")
    return quantity


def _cpus(quantity: str) -> str:
    if quantity.endswith("i"):
        raise ValueError("is a number of CPUs and has no binary unit: write for example 96 or 1500m")
    if not _SMALLEST_CPU <= amount(quantity) <= _MOST_CPUS:
        raise ValueError(f"has to be from 1m (a thousandth of a CPU) to {_MOST_CPUS} CPUs")
    return quantity


def _memory(quantity: str) -> str:
    if amount(quantity) < _GIBIBYTE:
        raise ValueError("is less than 1Gi; a number without a unit is bytes: write for example 20Gi")
    return quantity


def _volume(quantity: str) -> str:
    if amount(quantity) > _LARGEST_VOLUME:
        raise ValueError("is more than 64Ti, and no cloud's disk is larger; a claim cannot be made smaller again")
    return quantity


Quantity = Annotated[str, BeforeValidator(number_as_text), AfterValidator(_more_than_nothing)]
Cpus = Annotated[Quantity, AfterValidator(_cpus)]
Memory = Annotated[Quantity, AfterValidator(_memory)]
VolumeSize = Annotated[Memory, AfterValidator(_volume)]
