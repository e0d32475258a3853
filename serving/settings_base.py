"""What all settings have in common: camelCase keys in the stack file, nothing unknown, nothing changed later."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, frozen=True)
