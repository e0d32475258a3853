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
from ray.llm._internal.common.placement import PlacementGroupConfig
from ray.llm._internal.serve.core.ingress.builder import LLMServingArgs
from ray.llm._internal.serve.serving_patterns.prefill_decode.builder import PDServingArgs
from ray.runtime_env import RuntimeEnv
from ray.serve.config import AutoscalingConfig
from ray.serve.schema import DeploymentSchema, ServeDeploySchema
from vllm.config import KVTransferConfig
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.openai.cli_args import FrontendArgs

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
    """What an application builder takes."""
    schema = of_model(model)
    placed = of_model(PlacementGroupConfig)
    schema["$defs"] |= placed.pop("$defs") | {"PlacementGroupConfig": placed}
    known = schema["$defs"]["LLMConfig"]["properties"]
    known["placement_group_config"] = {"anyOf": [{"$ref": "#/$defs/PlacementGroupConfig"}, {"type": "null"}]}
    return only_models(schema)


def only_models(schema: Any) -> Any:
    """Where a model, or any object, is taken, the object has to be that model: Ray makes it one later."""
    if isinstance(schema, list):
        return [only_models(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: only_models(below) for key, below in schema.items()}
    choices = kept.get("anyOf")
    if isinstance(choices, list) and any("$ref" in choice for choice in choices):
        choices[:] = [choice for choice in choices if choice != {"additionalProperties": True, "type": "object"}]
        return choices[0] if len(choices) == 1 else kept
    return kept


def of_engine() -> dict[str, Any]:
    """vLLM's arguments. One whose type has no schema takes anything."""
    hints = typing.get_type_hints(AsyncEngineArgs)
    found: dict[str, Any] = {}
    for name in names(AsyncEngineArgs):
        try:
            found[name] = bare(TypeAdapter(hints[name]).json_schema())
        except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema):
            found[name] = {}
    found["kv_transfer_config"] = bare(TypeAdapter(KVTransferConfig | None).json_schema())
    return found


def names(arguments: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(arguments)]


def of_deployment_config() -> Any:
    """LLMConfig's deployment_config: what `serve.deployment` takes, typed as in a Serve config."""
    schema = of_model(DeploymentSchema)
    options = inspect.signature(serve.deployment).parameters
    schema["properties"] = {name: schema["properties"].get(name, {}) for name in sorted(options) if name[0] != "_"}
    schema["properties"]["autoscaling_config"] = {"anyOf": [{"$ref": "#/$defs/AutoscalingConfig"}, {"type": "null"}]}
    schema["$defs"]["AutoscalingConfig"] = _merged(schema, of_model(AutoscalingConfig))
    schema.pop("required", None)
    schema.pop("ignores", None)
    return only_models(schema)


def _merged(schema: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    schema.setdefault("$defs", {}).update(other.pop("$defs", {}))
    return other


def main(result: Path) -> None:
    schemas = {
        "serve": only_models(of_model(ServeDeploySchema)),
        "pd": of_builder(PDServingArgs),
        "aggregated": of_builder(LLMServingArgs),
        "deployment_config": of_deployment_config(),
        "engine": of_engine(),
        "frontend": sorted(set(names(FrontendArgs)) - set(names(AsyncEngineArgs))),
        "runtime_env": sorted(RuntimeEnv.known_fields),
    }
    result.write_text(json.dumps(schemas, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
