"""The hit rate that the service's counters show, on both kinds of deployment."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from recorded_metrics import recorded

from benchmarks.metrics import Counters, Series
from benchmarks.prefix_hits import measured_hit_rate


def counters(**engines: Mapping[str, float]) -> Counters:
    """Engine -> counter without its prefix and suffix -> increase."""
    values: dict[Series, float] = {
        (f"ray_vllm_{name}_total", frozenset({("ReplicaId", engine)})): value
        for engine, found in engines.items()
        for name, value in found.items()
    }
    return Counters(values)


def test_all_engines_of_an_aggregated_deployment_count() -> None:
    delta = counters(
        one={"prompt_tokens": 1000, "prompt_tokens_cached": 640},
        other={"prompt_tokens": 1000, "prompt_tokens_cached": 160},
    )
    assert measured_hit_rate(delta, "aggregated") == pytest.approx(0.4)


def test_decode_engines_do_not_count() -> None:
    """What they have is what prefill sent them."""
    received = {"prompt_tokens": 1000, "prompt_tokens_cached": 999, "external_prefix_cache_hits": 1000}
    delta = counters(prefill={"prompt_tokens": 1000, "prompt_tokens_cached": 256}, decode=received)
    assert measured_hit_rate(delta, "pd") == pytest.approx(0.256)


def test_an_engine_that_never_hit_shows_no_counter_of_hits() -> None:
    assert measured_hit_rate(counters(one={"prompt_tokens": 1000}), "aggregated") == 0


def test_what_cannot_be_told() -> None:
    assert measured_hit_rate(Counters({}), "aggregated") is None
    # Nobody received any KV: nothing tells prefill from decode.
    assert measured_hit_rate(counters(one={"prompt_tokens": 1000}), "pd") is None


def test_lookups_repeated_while_a_prompt_waits_are_not_hits() -> None:
    delta = counters(one={"prompt_tokens": 1000, "prompt_tokens_cached": 100, "prefix_cache_hits": 900})
    assert measured_hit_rate(delta, "aggregated") == pytest.approx(0.1)


def test_a_recorded_service_without_a_prefix_cache() -> None:
    assert measured_hit_rate(recorded("proven"), "pd") == 0
