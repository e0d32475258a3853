"""What all settings have in common: camelCase keys in the stack file, nothing unknown, nothing changed later."""

from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, frozen=True)


def number_as_text(value: Any) -> Any:
    """YAML and `pulumi config set --path` make a number of `96`, where the Kubernetes API wants text."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _more_than_nothing(quantity: str) -> str:
    """No pod or volume of ours works with none of anything, and a limit of 0 is no limit."""
    if not Decimal(quantity.rstrip("mkMGTPEi")):
        raise ValueError("has to be more than 0")
    return quantity


# A quantity of the Kubernetes API: 132, 500m, 1062Gi (apimachinery pkg/api/resource; its exponents left out).
Quantity = Annotated[
    str,
    BeforeValidator(number_as_text),
    Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"),
    AfterValidator(_more_than_nothing),
]
