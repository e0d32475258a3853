"""Two sides under several SLOs, in words and numbers."""

from dataclasses import replace

import numpy as np
import pytest
from stand_in_data import request

from benchmarks.boundary import NEAR
from benchmarks.joint_search import conclude
from benchmarks.measured import Measured
from benchmarks.shown_met import shown_met
from benchmarks.slo import Slo
from benchmarks.slo_comparison import compare_slos

TTFT = Slo(metric="ttft", statistic="p90", bound=100, unit="ms")
LOOSE = Slo(metric="ttft", statistic="p90", bound=10, unit="s")
RATES = [boundary * factor for boundary in (4.0,) for factor in (0.94, 0.96, 0.98, 1.0, 1.02, 1.04, 1.06, 0.97, 1.03)]


def side(boundary: float, seed: int, requests: int = 400) -> list[Measured]:
    """Runs of a service whose p90 TTFT is 100 ms at `boundary` and rises with the twelfth power of the rate."""
    draw = np.random.default_rng(seed)
    runs: list[Measured] = []
    for factor in RATES:
        rate = factor / 4.0 * boundary
        times = draw.exponential((rate / boundary) ** 12 * 100 / np.log(10), requests)
        window = [
            request(n, sent_s=n / rate, end_s=n / rate + 1, ttft_ms=float(value), e2e_ms=1000.0)
            for n, value in enumerate(times)
        ]
        runs.append(Measured(rate, window, requests))
    return runs


def test_the_better_side_is_named_with_how_much_and_how_sure() -> None:
    (found,) = compare_slos({"default": [TTFT]}, ("agg-3", side(4.0, 1)), ("pd-2p1d", side(5.6, 2)))
    assert found.ratio.verdict == "more"
    assert found.sentence.startswith("pd-2p1d serves 1.")
    assert "× [1." in found.sentence
    assert found.sentence.endswith("the rate of agg-3 under TTFT p90 ≤ 100 ms")


def test_equal_sides_differ_in_nothing() -> None:
    (found,) = compare_slos({"default": [TTFT]}, ("a", side(4.0, 3)), ("b", side(4.0, 4)))
    assert found.ratio.verdict == "no difference shown"
    assert found.sentence.startswith("no difference shown under TTFT p90 ≤ 100 ms: b serves ")


def test_an_slo_that_both_meet_everywhere_parts_nothing() -> None:
    found = compare_slos({"x": [TTFT], "loose": [LOOSE]}, ("a", side(4.0, 5)), ("b", side(5.6, 6)))
    assert [item.name for item in found] == ["x", "loose"]
    assert "both meet it at every rate measured" in found[1].sentence
    assert found[1].base.met_up_to
    assert "up to" in str(found[1].base)


def test_the_bound_that_fails_first_decides() -> None:
    (both,) = compare_slos({"x": [TTFT, LOOSE]}, ("a", side(4.0, 7)), ("b", side(5.6, 8)))
    (alone,) = compare_slos({"x": [TTFT]}, ("a", side(4.0, 7)), ("b", side(5.6, 8)))
    assert both.base.rate == alone.base.rate
    assert both.ratio == alone.ratio


def test_one_side_that_never_fails_is_at_least_so_much_better() -> None:
    """The candidate meets the bound at every rate, the highest of which lies above the base's boundary."""
    slow = side(4.0, 1)
    never = [replace(run, window=[replace(r, ttft_ms=(r.ttft_ms or 0) / 4) for r in run.window]) for run in side(8, 2)]
    highest = max(run.rate for run in never)
    never_from = min(run.rate for run in never if run.rate > highest * np.exp(-NEAR))
    (found,) = compare_slos({"x": [TTFT]}, ("agg-3", slow), ("pd-2p1d", never))
    assert (found.ratio.verdict, found.ratio.estimate) == ("more", None)
    assert found.ratio.low is not None
    assert found.base.fails is not None
    assert 1.5 < found.ratio.low < max(run.rate for run in never) / found.base.fails
    fails = conclude([TTFT], slow, found.ratio.confidence).fails
    assert fails is not None
    assert fails > found.base.fails
    assert found.ratio.low == pytest.approx(never_from / fails)
    assert found.sentence == f"pd-2p1d serves at least {found.ratio.low:.2f}× the rate of agg-3 under TTFT p90 ≤ 100 ms"
    (other,) = compare_slos({"x": [TTFT]}, ("pd-2p1d", never), ("agg-3", slow))
    assert (other.ratio.verdict, other.ratio.high) == ("less", 1 / found.ratio.low)


def test_runs_that_pass_by_a_hair_or_are_few_show_no_difference() -> None:
    """At 1.05 times the base's boundary: one run, three that scatter about their bound, and three that do not."""
    slow, quick = side(4.0, 1), side(4.6, 2)
    passing = [run for run in quick if 4.25 < run.rate < 4.5]
    assert len(passing) >= 3
    for few in (passing[-1:], passing[-2:]):
        (found,) = compare_slos({"x": [TTFT]}, ("a", slow), ("b", few))
        assert (found.ratio.verdict, found.ratio.low) == ("not known", None)
        assert found.sentence.startswith("not known under")
    assert shown_met([TTFT], passing, 0.995) is None
    assert shown_met([TTFT], passing, 0.5) == min(run.rate for run in passing)
    assert shown_met([TTFT], slow, 0.5) is None


def test_a_side_that_was_not_measured_beyond_the_others_boundary_is_not_known_to_be_better() -> None:
    slow = side(4.0, 1)
    lower = [Measured(run.rate / 3, run.window, run.sent) for run in side(8.0, 2)]
    never = [replace(run, window=[replace(r, ttft_ms=1.0) for r in run.window]) for run in lower]
    for sides in ((slow, never), (never, slow)):
        (found,) = compare_slos({"x": [TTFT]}, ("a", sides[0]), ("b", sides[1]))
        assert (found.ratio.verdict, found.ratio.low, found.ratio.high) == ("not known", None, None)
