"""What the pinned Ray and vLLM accept, in JSON Schema: `python program_schemas.py RESULT`.

From their own pydantic models and dataclasses, without any of their words. An object whose model passes over unknown
keys has `"ignores": true`.
"""

import dataclasses
import inspect
import json
import sys
import typing
from pathlib import Path
from typing import Any

from pydantic import BaseModel, PydanticSchemaGenerationError, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from ray import serve
from ray.llm._internal.serve.core.ingress.builder import LLMServingArgs
from ray.llm._internal.serve.serving_patterns.prefill_decode.builder import PDServingArgs
from ray.runtime_env import RuntimeEnv
from ray.serve.config import AutoscalingConfig
from ray.serve.schema import DeploymentSchema, ServeDeploySchema
from vllm.config import KVTransferConfig
from vllm.engine.arg_utils import AsyncEngineArgs

_WORDS = ("title", "description", "examples", "default", "deprecated")


def bare(value: Any, names: bool = False) -> Any:
    """Without words. `names`: the keys of `value` are names of fields, not JSON Schema's own."""
    if isinstance(value, list):
        return [bare(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: bare(below, names=not names and key in ("properties", "$defs"))
        for key, below in value.items()
        if names or key not in _WORDS
    }
    if not names and "properties" in kept and "additionalProperties" not in kept:
        kept |= {"additionalProperties": False, "ignores": True}
    return kept


def of_model(model: type[BaseModel]) -> Any:
    return bare(model.model_json_schema())


def of_builder(model: type[BaseModel]) -> Any:
    """What an application builder takes. Where a model, or any object, is taken, the object has to be that model."""
    schema = of_model(model)
    for name in ("llm_configs", "prefill_config", "decode_config"):
        if (found := schema["properties"].get(name)) is not None:
            choices = (found.get("items") or found)["anyOf"]
            choices[:] = [one for one in choices if one != {"additionalProperties": True, "type": "object"}]
    known = schema["$defs"]["LLMConfig"]["properties"]
    known["model_loading_config"] = {"$ref": "#/$defs/ModelLoadingConfig"}
    known["lora_config"] = {"anyOf": [{"$ref": "#/$defs/LoraConfig"}, {"type": "null"}]}
    return schema


def of_engine() -> dict[str, Any]:
    """vLLM's arguments. One whose type has no schema takes anything."""
    hints = typing.get_type_hints(AsyncEngineArgs)
    found: dict[str, Any] = {}
    for field in dataclasses.fields(AsyncEngineArgs):
        try:
            found[field.name] = bare(TypeAdapter(hints[field.name]).json_schema())
        except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema):
            found[field.name] = {}
    found["kv_transfer_config"] = bare(TypeAdapter(KVTransferConfig | None).json_schema())
    return found


def of_deployment_config() -> Any:
    """LLMConfig's deployment_config: what `serve.deployment` takes, typed as in a Serve config."""
    schema = of_model(DeploymentSchema)
    options = inspect.signature(serve.deployment).parameters
    schema["properties"] = {name: schema["properties"].get(name, {}) for name in sorted(options) if name[0] != "_"}
    schema["properties"]["autoscaling_config"] = {"anyOf": [{"$ref": "#/$defs/AutoscalingConfig"}, {"type": "null"}]}
    schema["$defs"]["AutoscalingConfig"] = _merged(schema, of_model(AutoscalingConfig))
    schema.pop("required", None)
    schema.pop("ignores", None)
    return schema


def _merged(schema: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    schema.setdefault("$defs", {}).update(other.pop("$defs", {}))
    return other


def main(result: Path) -> None:
    schemas = {
        "serve": of_model(ServeDeploySchema),
        "pd": of_builder(PDServingArgs),
        "aggregated": of_builder(LLMServingArgs),
        "deployment_config": of_deployment_config(),
        "engine": of_engine(),
        "runtime_env": sorted(RuntimeEnv.known_fields),
    }
    result.write_text(json.dumps(schemas, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
