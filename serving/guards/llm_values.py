"""Values of an LLMConfig that Ray checks by code of its own, and not by their type."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.near_names import meant
from serving.guards.serve_options import by_ray
from serving.guards.view import View

_CLOUD = ("s3://", "gs://", "abfss://", "azure://", "pyarrow-")


@guard(
    "llm-engine-unknown",
    "error",
    what="An `llm_engine` that Ray Serve LLM does not have",
    silently="the application does not build, and a RayService stays at its old one, with the nodes already paid for",
    fix="write `llm_engine: vLLM`, or leave it out",
    source="ray 2.55, 2.60 llm/_internal/serve/core/configs/llm_config.py: validate_llm_engine",
    holds={"ray": ">=2.55,<2.61"},
)
def llm_engine_unknown(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        given = engine.node.at("llm_engine")
        if given is not None and given.text is not None and given.text != "vLLM":
            yield given, f"{given.text}{meant(given.text, ['vLLM'])}"


@guard(
    "lora-path-local",
    "error",
    what="`dynamic_lora_loading_path` that is no cloud storage",
    silently="the application does not build, and a RayService stays at its old one, with the nodes already paid for",
    fix="write s3://, gs://, abfss:// or azure:// and a path; adapters on a disk go into vLLM's `lora_modules`",
    source="ray 2.55, 2.60 llm/_internal/serve/core/configs/llm_config.py: validate_dynamic_lora_loading_path",
    holds={"ray": ">=2.55,<2.61"},
)
def lora_path_local(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        given = engine.node.at("lora_config", "dynamic_lora_loading_path")
        if given is not None and given.text is not None and not given.text.startswith(_CLOUD):
            yield given, given.text
