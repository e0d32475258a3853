"""The number that a quantity of the Kubernetes API stands for: 132, 500m, 1062Gi."""

import re
from decimal import Decimal

# apimachinery pkg/api/resource/quantity.go ("The serialization format is"), without a sign.
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?:([eE][+-]?[0-9]{1,2})|([KMGTPE]i|[numkMGTPE]))?", re.ASCII)
_FACTORS = {
    **{suffix: Decimal(1000) ** power for power, suffix in zip((-3, -2, -1, *range(1, 7)), "numkMGTPE", strict=True)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}


def amount(quantity: str) -> Decimal:
    """The number that a quantity stands for. Raises ValueError."""
    match = _QUANTITY.fullmatch(quantity)
    if not match:
        raise ValueError("has to be a quantity of Kubernetes, a number and its unit: 132, 500m, 1062Gi")
    number, exponent, suffix = match.groups()
    return Decimal(number + (exponent or "")) * _FACTORS.get(suffix, Decimal(1))
