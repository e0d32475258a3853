"""What a run says in a sentence."""

from __future__ import annotations

from stand_in_data import request, scenario_data

from benchmarks.evidence import KvProof
from benchmarks.highest_rate import HighestRate, SloAnswer
from benchmarks.run_directory import RateResult
from benchmarks.scenario import Scenario
from benchmarks.summary import summarize
from benchmarks.validity import Finding
from benchmarks.verdict import best_rate, judge_run


def result(rate: float, met: bool | None) -> RateResult:
    """A rate that meets its SLO, misses it, or has too few answers to tell."""
    answered = 5 if met is None else 40
    window = [request(n, ttft_ms=10_000.0 if met is False else 10.0) for n in range(answered)]
    summary = summarize(Scenario.model_validate(scenario_data()), rate, window, 0)
    assert summary.slo_met is met
    proof = KvProof(verdict="not applicable", reasons=[], requests=answered, foreign_requests=0)
    return RateResult(rate=rate, seed=1, summary=summary, kv=proof, findings=[])


def test_a_window_too_short_makes_unusable_what_meets_its_slo_and_not_what_misses_it() -> None:
    """A search tries rates of which it does not know how slow they are, and must stay comparable."""
    short = Finding(id="window", outcome="fault", sentence="the window lasted 3 s")
    foreign = Finding(id="foreign-traffic", outcome="fault", sentence="12 requests")
    falling = Finding(id="ttft-trend", outcome="fault", sentence="TTFT falls", evidence={"ttft_ms_rise": -0.8})
    for met, findings, unusable in (
        (True, [short], True),
        (None, [short], True),
        (False, [short], False),
        (False, [short, foreign], True),
        (False, [short, falling], True),
        (False, [foreign], True),
    ):
        rate = result(1, met).model_copy(update={"findings": findings})
        assert (rate.unusable, rate.overloaded) == (unusable, not unusable)
    assert not result(1, False).overloaded


def test_the_best_rate_lies_below_the_first_that_is_not_shown_to_meet_the_slo() -> None:
    assert best_rate([result(1, True), result(2, True), result(3, False), result(4, True)]) == 2
    assert best_rate([result(1, True), result(2, None), result(3, True)]) == 1
    assert best_rate([result(1, None), result(2, True)]) is None


def test_no_rate_is_named_up_to_which_a_service_that_is_not_monotone_meets_its_slo() -> None:
    found = HighestRate(confidence=0.9, rate=None, passes=None, fails=None, missed_below=2, met_above=3)
    answers = [SloAnswer(name="slo", bounds=[], highest=found)]
    said = judge_run([result(1, True), result(2, False), result(3, True)], [], answers)
    assert said.outcome == "not shown"
    assert said.sentence.endswith("it is not monotone: missed at 2 req/s, but met at 3 req/s.")


def test_an_answer_that_is_not_in_order_is_no_sentence() -> None:
    """A range without its estimate between the ends, as earlier versions wrote: the rates stand instead."""
    found = HighestRate(confidence=0.9, rate=None, passes=4.98, fails=5.1)
    said = judge_run([result(1, True), result(2, False)], [], [SloAnswer(name="slo", bounds=[], highest=found)])
    assert said.sentence == "Every SLO is met at 1 req/s, and not at 2 req/s."
