"""What all settings have in common: camelCase keys in the stack file, nothing unknown, nothing changed later."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, frozen=True)


def number_as_text(value: Any) -> Any:
    """YAML and `pulumi config set --path` make a number of `96`, where the Kubernetes API wants text."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _no_truth(value: Any) -> Any:
    """Pulumi hands numbers over as text, so that text counts; Python would also count `true`, as 1."""
    if isinstance(value, bool):
        raise ValueError("has to be a whole number")
    return value


Count = Annotated[int, BeforeValidator(_no_truth)]
