"""Keys that one release of Ray Serve LLM takes and another ignores or refuses."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.serve_options import by_ray, older
from serving.guards.view import View

_PROXY = ("proxy_cls_config", "proxy_deployment_config")


@guard(
    "use-cpu-refused",
    "error",
    what="`use_cpu` is a key of Ray 2.55 alone",
    silently="the application does not build, and a RayService stays at its old one, with the nodes already paid for",
    fix="remove it, or write `accelerator_config: {kind: cpu}` where a CPU is meant",
    source="ray 2.56 llm/_internal/serve/core/configs/llm_config.py: LLMConfig forbids unknown keys; ray#61906",
    holds={"ray": ">=2.56"},
)
def use_cpu_refused(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        if (said := engine.node.at("use_cpu")) is not None:
            yield said, f"use_cpu: {said.value}"


@guard(
    "accelerator-config-refused",
    "error",
    what="`accelerator_config` came with Ray 2.56, and this Ray is older",
    silently="the application does not build, and a RayService stays at its old one, with the nodes already paid for",
    fix="write `use_cpu: true` or `use_cpu: false`, or a `placement_group_config` whose bundles have a GPU",
    source="ray 2.55 llm/_internal/serve/core/configs/llm_config.py: LLMConfig forbids unknown keys",
    holds={"ray": ">=2.55,<2.56"},
)
def accelerator_config_refused(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        if (said := engine.node.at("accelerator_config")) is not None:
            yield said, "accelerator_config"


@guard(
    "proxy-config-ignored",
    "error",
    what="Settings for the prefill/decode proxy, which Ray Serve LLM has not had since 2.55",
    silently="they are accepted and thrown away: decode replicas call prefill themselves, and no proxy gets the "
    "replicas or CPUs that are asked for",
    fix="remove it; size the ingress with `ingress_deployment_config: {num_replicas: N}`",
    source="ray 2.55 to 2.58 llm/_internal/serve/serving_patterns/prefill_decode/builder.py; ray#62076",
    holds={"ray": ">=2.55,<2.59"},
)
def proxy_config_ignored(view: View) -> Iterator[Found]:
    yield from _proxies(view)


@guard(
    "proxy-config-refused",
    "error",
    what="Settings for the prefill/decode proxy, which Ray 2.59 no longer takes",
    silently="the application does not build, and a RayService stays at its old one, with the nodes already paid for",
    fix="remove it; size the ingress with `ingress_deployment_config: {num_replicas: N}`",
    source="ray 2.59 llm/_internal/serve/serving_patterns/prefill_decode/builder.py: PDServingArgs; ray#62076",
    holds={"ray": ">=2.59"},
)
def proxy_config_refused(view: View) -> Iterator[Found]:
    yield from _proxies(view)


def _proxies(view: View) -> Iterator[Found]:
    for application in view.applications:
        for key in _PROXY if application.pd else ():
            given = application.args.at(key)
            if given is not None and given.value is not None:
                yield given, key


@guard(
    "direct-streaming-off",
    "error",
    what="RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING does not turn direct streaming on",
    silently="answers keep passing through the ingress replicas, one hop more for every token, as without it",
    fix="run Ray 2.56 or later, and set it to 1: no other word counts",
    source='ray 2.56 to 2.60 llm/_internal/serve/constants.py (`== "1"`); Ray 2.55 does not have it',
    holds={"ray": ">=2.55,<2.61"},
)
def direct_streaming_off(view: View) -> Iterator[Found]:
    name = "RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING"
    for engine in by_ray(view):
        value = engine.variable(name)
        # `0` and no value at all are meant to leave it off.
        if value is None or value.strip().lower() in ("", "0", "false", "no", "off"):
            continue
        if value != "1":
            yield engine.environment[name], f"{name}={value}"
        elif older(view, "ray", "2.56"):
            yield engine.environment[name], f"Ray {view.versions['ray']} reads no such variable"


@guard(
    "chat-prefill-not-clamped",
    "note",
    what="This Ray limits a prefill request by `max_tokens` alone, and chat clients send `max_completion_tokens`",
    silently="for such a request prefill generates the whole answer, TTFT contains all of it, and decode then reads "
    "KV blocks from the end of prompt and answer instead of the prompt's: wrong text with HTTP 200, or, where prefill "
    "ended by itself, a prompt that decode computes again",
    fix="run Ray 2.56 or later, or let clients send `max_tokens`; benchmark with /v1/completions",
    source="ray 2.55 llm/_internal/serve/serving_patterns/prefill_decode/pd_server.py:68-83 (2.56 clamps both); "
    "vllm 0.18 chat_completion/serving.py:272, nixl_connector.py:908,2600 (read, not run)",
    holds={"ray": ">=2.55,<2.56"},
)
def chat_prefill_not_clamped(view: View) -> Iterator[Found]:
    for application in view.applications:
        path = application.node.at("import_path")
        if application.pd and path is not None:
            yield path, f"every /v1/chat/completions request on Ray {view.versions.get('ray', '')}".rstrip()
