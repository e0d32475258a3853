"""Metrics that are to show that KV moves."""

from __future__ import annotations

import re
from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located, Place
from serving.guards.serve_options import by_ray, is_true
from serving.guards.view import View
from serving.guards.yaml_files import YamlOrigin

_SUM = re.compile(r"\bray_vllm[:_]\w+_sum\b")


@guard(
    "engine-metrics-off",
    "warning",
    what="An engine that moves KV without vLLM's metrics",
    silently="where KV does not arrive, decode computes the prompt itself without a log or an error, and only these "
    "metrics would show it",
    fix="leave `log_engine_metrics` at true; for `vllm serve`, leave out `--disable-log-stats`",
    source="ray 2.55 llm/_internal/serve/engines/vllm/vllm_engine.py:470-484; pd_server.py (no kv_transfer_params: "
    "decode recomputes)",
)
def engine_metrics_off(view: View) -> Iterator[Found]:
    for engine in view.moving():
        off = engine.node.at("log_engine_metrics") if engine.by_ray else engine.argument("disable_log_stats")
        if off is not None and off.value is (not engine.by_ray):
            yield off, f"{engine.role} engine"


@guard(
    "log-stats-contradict",
    "error",
    what="`disable_log_stats` in an LLMConfig whose engine metrics are on, as they are by default",
    silently="the application does not build, and a RayService stays at its old one, with the nodes already paid for",
    fix="remove `disable_log_stats`: it would take the metrics that show whether KV moves",
    source="ray 2.55 to 2.60 llm/_internal/serve/core/configs/llm_config.py: _check_log_stats_with_metrics",
)
def log_stats_contradict(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        off, metrics = engine.argument("disable_log_stats"), engine.node.at("log_engine_metrics")
        if is_true(off) and off is not None and (metrics is None or metrics.value is True):
            yield off, "disable_log_stats: true"


@guard(
    "sum-of-a-ray-histogram",
    "warning",
    what="A query for the `_sum` of one of vLLM's histograms as Ray exports it",
    silently="Ray rebuilds it from the middles of the buckets: bytes of KV that it reports are up to twice or half "
    "of those that moved, and averages of TTFT and ITL are off alike",
    fix="count with `_count` and with counters, as ray_vllm_prompt_tokens_by_source_total; take bytes from the "
    "transfers themselves",
    source="ray 2.55 to 2.60 _private/telemetry/open_telemetry_metric_recorder.py: record_histogram_aggregated_batch",
    holds={"ray": ">=2.55,<2.61"},
)
def sum_of_a_ray_histogram(view: View) -> Iterator[Found]:
    for document in view.queries:
        for text in _texts(document):
            for match in _SUM.finditer(str(text.value)):
                yield _line(text, match.start()), match[0]


def _texts(whole: Located) -> Iterator[Located]:
    """Every text below, each once however often it is an alias."""
    todo, seen = [whole], set[int]()
    while todo:
        here = todo.pop()
        if isinstance(here.value, str):
            yield here
        elif id(here.value) not in seen:
            seen.add(id(here.value))
            todo += [value for _, value in here.items()]
            todo += here.entries()


def _line(text: Located, position: int) -> Place:
    """The line of a place within a text: of a block (`|`) its own, else the one where the text begins."""
    place, origin = text.place, text.origin
    if isinstance(origin, YamlOrigin):
        before, fixed = origin.inside(text.path)
        if fixed is None:
            return Place(place.file, place.key, before + 1 + str(text.value).count("\n", 0, position))
    return place
