"""What all settings have in common: camelCase keys in the stack file, nothing unknown, nothing changed later."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, frozen=True)


# A quantity of the Kubernetes API: 132, 500m, 1062Gi (apimachinery pkg/api/resource; its exponents left out).
Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$")]
