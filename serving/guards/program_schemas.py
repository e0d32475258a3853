"""What Ray and vLLM themselves would refuse, or pass over, in keys, types and choices.

program_schemas.json is written from the classes of Ray 2.55 and vLLM 0.18 (tests/runtime/in_runtime/program_schemas.py)
and a test holds it against them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.near_names import meant
from serving.guards.serve_options import deployments
from serving.guards.view import View

SCHEMAS = Path(__file__).with_name("program_schemas.json")
_RAY, _VLLM = {"ray": ">=2.55,<2.56"}, {"vllm": ">=0.18,<0.19"}
_RAY_SOURCE = "ray 2.55 serve/schema.py, llm/_internal/serve/core/configs/base_pydantic.py:16-19"


@dataclass(frozen=True)
class Problem:
    """A value that the program does not take, or (`ignored`) a key that it does not read."""

    at: Located
    detail: str
    ignored: bool = False


@cache
def schemas() -> dict[str, Any]:
    return json.loads(SCHEMAS.read_text(encoding="utf-8"))


def keys_of(schema: str, model: str | None = None) -> frozenset[str]:
    """Keys of an object: of what a schema describes, or of one of the models in it."""
    found = schemas()[schema]
    return frozenset((found["$defs"][model] if model else found)["properties"])


@cache
def _validator(*keys: str) -> Any:
    """Of one of the schemas, or of one argument of the engine."""
    from jsonschema import Draft202012Validator, validators  # a tenth of a second that a manifest of pods need not wait

    # pydantic takes texts for numbers where they are some, 1 for true, and a whole float for an integer.
    checker = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, value: _number(value) is not None and float(_number(value) or 0).is_integer(),
            "number": lambda _, value: _number(value) is not None,
            "boolean": lambda _, value: value in (True, False) or str(value).lower() in _TRUTH,
        }
    )
    schema: Any = schemas()
    for key in keys:
        schema = schema[key]
    kept = Draft202012Validator.VALIDATORS
    own = {name: _of_number(kept[name]) for name in _LIMITS} | {n: _by_value(kept[n]) for n in ("enum", "type")}
    return validators.extend(Draft202012Validator, validators=own, type_checker=checker)(schema)


def _by_value(keyword: Any) -> Any:
    """A keyword that lets a text pass where the schema lists what a Python Enum holds: numbers, or paths of classes.

    vLLM takes these by name, as `attention_backend: ROCM_ATTN` and `cudagraph_mode: FULL`, and no schema has the names.
    """

    def check(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
        texts = [one for one in schema.get("enum", ["text"]) if isinstance(one, str)]
        if not isinstance(instance, str) or any(text and "." not in text for text in texts):
            yield from keyword(validator, wanted, instance, schema)

    return check


def _of_number(keyword: Any) -> Any:
    """A limit of JSON Schema that takes texts for numbers too."""

    def check(validator: Any, limit: Any, instance: Any, schema: Any) -> Iterator[Any]:
        number = _number(instance)
        yield from keyword(validator, limit, number, schema) if number is not None else ()

    return check


_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


_TRUTH = ("true", "false", "yes", "no", "on", "off", "t", "f", "y", "n", "0", "1")


def _number(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None


def problems(whole: Located, *keys: str) -> Iterator[Problem]:
    """What the schema of this name finds in a value."""
    for error in _validator(*keys).iter_errors(whole.value):
        yield from _problems(whole, error)


def _problems(whole: Located, error: Any) -> Iterator[Problem]:
    at = whole.at(*error.absolute_path) or whole
    if error.validator == "additionalProperties" and error.schema.get("properties"):
        known = error.schema["properties"]
        for key, below in at.items():
            if key not in known and not _keys_of_its_own(whole, at):
                detail = f"{key} is not known here{meant(key, known, 0.6)}"
                yield Problem(below, detail, bool(error.schema.get("ignores")))
    elif error.validator == "anyOf":
        # Of `X or nothing` what is wrong with X; of several kinds, what is wrong in the deepest of them.
        several = [below for below in error.context if below.validator != "type" or below.schema.get("type") != "null"]
        inner = [below for below in several if len(below.absolute_path) > len(error.absolute_path)]
        for below in inner or several[:1]:
            yield from _problems(whole, below)
    else:
        yield Problem(at, " ".join(str(error.message).split())[:200])


# Objects whose keys other guards know, for more versions of Ray and vLLM: ray_keys.py, engine_arguments.py, kv_keys.py.
_ELSEWHERE = (
    *("applications", "deployments", "http_options", "ray_actor_options", "prefill_config", "decode_config"),
    *("llm_configs", "model_loading_config", "placement_group_config", "callback_config", "lora_config"),
    *("deployment_config", "autoscaling_config", "request_router_config", "kv_transfer_config"),
)


def _keys_of_its_own(whole: Located, at: Located) -> bool:
    """Whether the unknown keys of an object are another guard's to find."""
    names = [part for part in at.path if isinstance(part, str)]
    return at.path == whole.path or (bool(names) and names[-1] in _ELSEWHERE)


def of_ray(view: View) -> list[Problem]:
    """What Serve's schema, the builders of applications and `serve.deployment` say."""
    return list(_of_ray(view))


def _of_ray(view: View) -> Iterator[Problem]:
    for config in view.serve:
        yield from problems(config, "serve")
    for application in view.applications:
        yield from problems(application.args, "pd" if application.pd else "aggregated")
        for engine in application.engines:
            yield from _of_runtime_env(engine.node.at("runtime_env"))
        yield from _of_runtime_env(application.node.at("runtime_env"))
    for deployment in deployments(view):
        if deployment.config is not None:
            yield from problems(deployment.config, "deployment_config")


def _of_runtime_env(node: Located | None) -> Iterator[Problem]:
    known = schemas()["runtime_env"]
    for key, below in node.items() if node else ():
        if key not in known:
            yield Problem(below, f"{key} is not known in a runtime_env{meant(key, known, 0.6)}", ignored=True)


@guard(
    "refused-by-ray",
    "error",
    what="A value of the wrong type, or a missing one, that Ray Serve refuses",
    silently="`serve deploy` fails; a RayService stays without the application, and only its status tells why",
    fix="write it as Ray's schema has it",
    source=_RAY_SOURCE,
    holds=_RAY,
)
def refused_by_ray(view: View) -> Iterator[Found]:
    return ((problem.at, problem.detail) for problem in view.once(of_ray) if not problem.ignored)


@guard(
    "ignored-by-ray",
    "error",
    what="A key that Ray Serve does not read and does not refuse",
    silently="what it should have set stays at its default",
    fix="correct the key, or remove it",
    source=_RAY_SOURCE,
    holds=_RAY,
)
def ignored_by_ray(view: View) -> Iterator[Found]:
    return ((problem.at, problem.detail) for problem in view.once(of_ray) if problem.ignored)


@guard(
    "refused-by-vllm",
    "error",
    what="A value that vLLM refuses: its type, or none of the choices",
    silently="Ray takes it, the replica fails minutes later, when vLLM reads it, and is started again and again; "
    "`vllm serve` ends at once, and so does its pod, again and again",
    fix="write it as vLLM's arguments have it",
    source="vllm 0.18 engine/arg_utils.py AsyncEngineArgs, config/kv_transfer.py; ray 2.55 vllm_models.py",
    holds=_VLLM,
)
def refused_by_vllm(view: View) -> Iterator[Found]:
    known = schemas()["engine"]
    for engine in view.engines:
        for name, value in engine.arguments.items():
            if value.value is None and name in _NONE:
                continue
            if name == "moe_backend" and value.text:  # as vllm 0.18 config/kernel.py reads it
                value = Located(value.text.lower().replace("-", "_"), value.path, value.origin)
            if name in known and (engine.by_ray or not _of_command(name, value, known[name])):
                for problem in problems(value, "engine", name):
                    yield problem.at, f"{name}: {problem.detail}"


_NONE = ("max_model_len", "enable_flashinfer_autotune")  # by default, which their types do not say
# Of a command these take amounts, and the first `auto` (vllm 0.18 engine/arg_utils.py human_readable_int_or_auto).
_AMOUNTS = ("max_model_len", "max_num_batched_tokens", "kv_cache_memory_bytes")


def _of_command(name: str, value: Located, schema: Any) -> bool:
    """Whether a word of a command may mean what the schema does not know: a variable, `None`, `32k`, one of several."""
    if not isinstance(value.value, str):
        return value.value is True and "boolean" not in str(schema)  # what follows was not understood
    several = any(kind in str(schema) for kind in ("'array'", "'object'"))
    amount = name in _AMOUNTS and re.fullmatch(r"auto|[0-9.]+[kKmMgGtT]", value.value.strip(), re.IGNORECASE)
    return several or bool(amount) or value.value in ("None", "") or any(sign in value.value for sign in "$`{")
