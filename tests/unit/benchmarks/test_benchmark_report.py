"""The report: one file without network, all charts drawn, faults in plain sight."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from recorded_metrics import proof_of
from stand_in_data import aggregated, poisson, request, scenario_data, target_data

from benchmarks.errors import BenchmarkError
from benchmarks.evidence import KvProof
from benchmarks.report import write_report
from benchmarks.resume import find_unfinished
from benchmarks.run_directory import (
    RateResult,
    RunDirectory,
    RunInfo,
    create,
    open_run,
    write_atomically,
)
from benchmarks.scenario import Scenario
from benchmarks.slo import Slo
from benchmarks.summary import summarize
from benchmarks.target import Target
from benchmarks.transport import judge
from benchmarks.validity import Seen, check_rate
from benchmarks.verdict import best_rate

URL = "http://127.0.0.1:18000"
PROVEN = KvProof(
    verdict="proven",
    reasons=[],
    requests=31,
    prompt_tokens=1984,
    expected_bytes=2_031_616,
    counted_bytes=2_031_616,
    expected_transfers=31,
    counted_transfers=31,
    failures={"failed transfers": 0},
    decode_computed_tokens=0,
    foreign_requests=0,
)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run of three rates of which none is finished."""
    info = RunInfo(
        run_id="20260101T000000Z-abcd", started=datetime.now(UTC), argv=["benchmarks"], tools={"aiperf": "0"}
    )
    scenario = Scenario.model_validate(scenario_data(rates=[1, 2, 3]))
    return create(tmp_path, info, Target.model_validate(target_data(URL)), scenario)


def finish(run: RunDirectory, rate: float, proof: KvProof = PROVEN, ttft_ms: float = 10.0) -> None:
    """Finish one rate with good answers."""
    due = run.scenario.warmup_requests(rate) + run.scenario.measured_requests(rate)
    times = enumerate(poisson(rate, due))
    requests = [request(n, ttft_ms=ttft_ms, sent_s=at, due_s=at, end_s=at + 0.08) for n, at in times]
    summary = summarize(run.scenario, rate, requests)
    findings = check_rate(Seen(run.scenario, summary, requests, proof, alike=0))
    folder, _ = run.start_rate(rate)
    write_atomically(folder / "command.json", '{"argv": ["aiperf", "profile", "--random-seed", "5"]}')
    run.finish_rate(RateResult(rate=rate, seed=5, summary=summary, kv=proof, findings=findings))


class _Page(HTMLParser):
    """Collects what a browser would fetch, and the text it would show."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.shown = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "data")]

    def handle_data(self, data: str) -> None:
        self.shown += data


def test_a_good_run(run: RunDirectory) -> None:
    for rate in run.scenario.rates:
        finish(run, rate)
    text = write_report(open_run(run.path)).read_text(encoding="utf-8")
    page = _Page(text)
    assert len(page.fetched) == 4  # each chart's data
    assert all(address.startswith("data:text/csv") for address in page.fetched)
    assert not re.search(r"url\(|@import|<script", text)
    assert text.count("<svg") == 4
    assert (
        text.count("req/s: 10 milliseconds [10 to 10]</title>") == 2 * 3 * 2
    )  # TTFT and TPOT: p50 and p90 of each rate
    assert "No fault found." in page.shown
    assert "Every SLO is met at 3 req/s and at every lower rate tried; no higher rate was tried." in page.shown
    assert "2,031,616" in page.shown
    assert "aiperf profile --random-seed 5" in page.shown
    assert "dummy weights" in page.shown


def test_a_fault_is_in_plain_sight(run: RunDirectory) -> None:
    reason = "the service reports no KV transfer at all"
    finish(run, 1)
    finish(run, 2, KvProof(verdict="failed", reasons=[reason], requests=31, expected_bytes=1, expected_transfers=31))
    shown = _Page(write_report(run).read_text(encoding="utf-8")).shown
    assert "These numbers must not be used." in shown
    assert "No fault found." not in shown
    assert "highest rate that meets" not in shown  # no number stands large that must not be used
    assert f"2 req/s: KV proof failed: {reason}" in shown
    assert "3.0 req/s not measured yet" in shown
    assert best_rate(run.results()) == 1


def test_how_the_kv_moved_is_told_for_each_rate_and_alike_rates_together(run: RunDirectory) -> None:
    for rate, name in ((1, "proven"), (2, "proven"), (3, "expired")):
        proof = proof_of(name)
        proof.transfers[0].transports = "tcp,self"
        proof.transport = judge(run.target, proof.transfers, [], None)
        finish(run, rate, proof)
    page = _Page(write_report(open_run(run.path)).read_text(encoding="utf-8"))
    assert "How the KV moved" in page.shown
    assert "1, 2, 3 req/s: 9,437,184 of 9,437,184" in page.shown
    assert "3 req/s: 2" in page.shown
    assert "expired KV blocks of 2 requests on prefill shg8wxgw" in page.shown
    assert "KV over TCP: UCX_TLS=tcp,self in decode's engines leaves TCP, no RDMA" in page.shown
    assert "RDMA not proven" not in page.shown  # nobody expects RDMA on this platform


def test_a_run_from_before_this_evidence_still_has_a_report(run: RunDirectory) -> None:
    finish(run, 1)
    file = run.rate_folder(1) / "summary.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    for new in ("causes", "tokens", "transfers", "transport"):
        del data["kv"][new]
    file.write_text(json.dumps(data), encoding="utf-8")
    target = json.loads((run.path / "target.json").read_text(encoding="utf-8"))
    for new in ("fabric", "node_exporter_urls", "node_exporter_service"):
        del target[new]
    (run.path / "target.json").write_text(json.dumps(target), encoding="utf-8")
    (run.path / "sums.json").unlink()
    write_atomically(run.path / "run.json", run.info.model_dump_json(exclude={"sums"}))
    shown = _Page(write_report(open_run(run.path)).read_text(encoding="utf-8")).shown
    assert "the run is older than this evidence" in shown
    assert "No fault found." in shown


def test_a_missed_slo_is_no_fault_but_ends_the_claim(run: RunDirectory, tmp_path: Path) -> None:
    strict = run.scenario.model_copy(update={"slo": [Slo(metric="ttft", statistic="p90", bound=20, unit="ms")]})
    run = create(tmp_path / "strict", run.info, run.target, strict)
    finish(run, 1)
    finish(run, 2, ttft_ms=40.0)
    finish(run, 3)
    assert best_rate(run.results()) == 1
    text = write_report(run).read_text(encoding="utf-8")
    assert "not met" in text
    assert "SLO p90 ≤ 20 ms" in text


def test_aggregated_has_no_kv_table(tmp_path: Path) -> None:
    info = RunInfo(run_id="1", started=datetime.now(UTC), argv=[], tools={})
    target = Target.model_validate(aggregated(URL, metrics_urls=[]))
    run = create(tmp_path, info, target, Scenario.model_validate(scenario_data(rates=[1])))
    finish(run, 1, KvProof(verdict="not applicable", reasons=[], requests=31))
    shown = _Page(write_report(run).read_text(encoding="utf-8")).shown
    assert "aggregated replicas move no KV" in shown
    assert "foreign traffic cannot be seen" in shown


def test_an_interrupted_rate_is_kept_aside_and_a_finished_one_is_found(run: RunDirectory) -> None:
    finish(run, 1)
    folder, attempt = run.start_rate(2)
    (folder / "aiperf.log").write_text("half way", encoding="utf-8")
    found = find_unfinished(run.path.parent.parent, run.target, run.scenario)
    assert found.path == run.path
    assert (attempt, found.start_rate(2)[1]) == (1, 2)
    assert (run.path / "rates" / "2.interrupted-1" / "aiperf.log").read_text() == "half way"
    assert [result.rate for result in found.results()] == [1]
    other = run.scenario.with_rates([5])
    with pytest.raises(BenchmarkError, match="started with another target, scenario or rates"):
        find_unfinished(run.path.parent.parent, run.target, other)


@pytest.mark.parametrize("damage", [b'{"stack": "of an older version"}', b"\xff\xfe"])
def test_an_unreadable_run_does_not_stand_in_the_way(run: RunDirectory, tmp_path: Path, damage: bytes) -> None:
    info = run.info.model_copy(update={"run_id": "20270101T000000Z-abcd"})
    newer = create(tmp_path, info, run.target, run.scenario)
    (newer.path / "target.json").write_bytes(damage)
    assert find_unfinished(tmp_path, run.target, run.scenario).path == run.path
    with pytest.raises(
        BenchmarkError, match=r"another target.* \(1 not readable, the latest: .*target.json is damaged"
    ):
        find_unfinished(tmp_path, run.target, run.scenario.with_rates([5]))
    for rate in run.scenario.rates:
        finish(run, rate)
    with pytest.raises(BenchmarkError, match=r"no unfinished run .* \(1 not readable.*; start one without --resume"):
        find_unfinished(tmp_path, run.target, run.scenario)


def test_a_damaged_summary_is_one_line(run: RunDirectory) -> None:
    finish(run, 1)
    (run.rate_folder(1) / "summary.json").write_text("{", encoding="utf-8")
    with pytest.raises(BenchmarkError, match="damaged or of another version"):
        run.results()


def test_a_fault_of_the_run_makes_it_unusable_as_one_of_a_rate_does(run: RunDirectory) -> None:
    finish(run, 1)
    info = run.info.model_copy(update={"image": {"ray": ["0.0"]}})
    target = run.target.model_copy(update={"versions": {"ray": "1.0"}})
    shown = _Page(write_report(RunDirectory(run.path, info, target, run.scenario)).read_text(encoding="utf-8")).shown
    assert "These numbers must not be used." in shown


def test_how_sure_each_latency_is_stands_below_it(run: RunDirectory) -> None:
    finish(run, 1)
    file = run.rate_folder(1) / "summary.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    data["summary"]["ttft"]["intervals"] = {"p90": [8.25, 12.5]}
    run.finish_rate(RateResult.model_validate(data))
    text = write_report(run).read_text(encoding="utf-8")
    assert "p90 8.25 to 12.5" in _Page(text).shown
    assert "8.25 to 12.5; SLO\N{NBSP}≤\N{NBSP}2\N{NBSP}s" in _Page(text).shown
    assert "p90 at 1 req/s: 10 milliseconds [8.25 to 12.5]</title>" in text


def test_a_mean_that_the_slo_bounds_is_drawn(run: RunDirectory) -> None:
    slo = [{"metric": "itl", "statistic": "mean", "bound": 25, "unit": "ms"}]
    scenario = Scenario.model_validate(scenario_data(rates=[1], slo=slo))
    bounded = create(run.path.parent.parent / "other", run.info, run.target, scenario)
    finish(bounded, 1)
    text = write_report(bounded).read_text(encoding="utf-8")
    assert "mean at 1 req/s: 10 milliseconds<" in text
    assert "Time between chunks" in text
