"""What a run writes down before load starts, and how long it waits, without AIPerf."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from stand_in_data import request, target_data
from stand_in_server import StandIn

from benchmarks import run as runner
from benchmarks.errors import BenchmarkError
from benchmarks.metrics import Counters, Settling
from benchmarks.priming import Priming
from benchmarks.prompt_text import Words
from benchmarks.run_directory import RunDirectory
from benchmarks.scenario import Scenario
from benchmarks.target import Target


@pytest.fixture
def run(target: Target, scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """A run that is ready to start, of a benchmark that takes itself for commit `abc-dirty`."""
    monkeypatch.setattr(runner, "find_aiperf", lambda name: name)
    monkeypatch.setattr(runner, "aiperf_version", lambda _: "0")
    monkeypatch.setattr(runner, "find_words", lambda *_: Words(words=[" a", " b"], overhead=0))
    monkeypatch.setattr(runner, "own_commit", lambda: "abc-dirty")
    monkeypatch.setattr(runner, "prime", lambda *_: Priming(seconds=[0.1], awake=True))
    return runner.prepare(target, scenario, tmp_path, "aiperf", resume=False)


def test_the_commit_is_written_down(run: RunDirectory) -> None:
    assert json.loads((run.path / "run.json").read_text(encoding="utf-8"))["commit"] == "abc-dirty"


def test_a_quiet_service_is_waited_for_as_long_as_settling_says(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[object] = []

    def stop(*arguments: object) -> None:
        used.append(arguments[-1])
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "settle", stop)
    with pytest.raises(KeyboardInterrupt):
        runner.execute(run, "aiperf", lambda _: None)
    assert used == [Settling()]


def test_a_scrape_before_the_load_is_repeated(
    service: StandIn, run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [BenchmarkError("metrics endpoint does not answer")]
    genuine = runner.scrape_target

    def scrape(target: Target, keep: Path | None = None) -> object:
        if keep is not None and failures:
            raise failures.pop()
        return genuine(target, keep)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "scrape_target", scrape)
    monkeypatch.setattr(runner, "run_in_group", stop)
    quick = Settling(quiet_s=0.1, confirm_s=0.1, limit_s=3, poll_s=0.05)
    with pytest.raises(KeyboardInterrupt):
        runner.execute(run, "aiperf", lambda _: None, quick)
    assert failures == []
    assert (run.rate_folder(run.scenario.rates[0]) / "metrics-before-0.prom").exists()


def test_nic_counters_that_cannot_be_read_cost_no_rate(service: StandIn, tmp_path: Path) -> None:
    """They say over what KV went. Without them that is not known, and says why."""
    data = target_data(service.url, node_exporter_urls=["http://127.0.0.1:9/metrics"])
    nowhere = Target.model_validate(data)
    before = runner._nics(nowhere, tmp_path / "nics-before")
    assert "node-exporter http://127.0.0.1:9/metrics does not answer" in str(before)
    found = runner._nic_bytes(before, Counters({}))
    assert found is not None
    assert found.problem == before
    unasked = runner._nics(Target.model_validate(target_data(service.url)), tmp_path / "nics-before")
    assert runner._nic_bytes(unasked, unasked) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("rate", "warned"), [(1.0, False), (5000.0, True)])
def test_a_rate_near_the_clients_ceiling_is_told_before_it_is_sent(
    service: StandIn, run: RunDirectory, monkeypatch: pytest.MonkeyPatch, rate: float, warned: bool
) -> None:
    """5,000 req/s are more than eight workers can do with any lengths."""
    said: list[str] = []

    def begin(argv: object, environment: object, log: object, tick: Callable[[float], None], *_: object) -> int:
        tick(0.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_in_group", begin)
    short = run.scenario.with_rates([rate]).model_copy(update={"window_s": 0.01, "warmup_s": 0.01})
    chosen = RunDirectory(run.path, run.info, run.target, short)
    quick = Settling(quiet_s=0.1, confirm_s=0.1, limit_s=3, poll_s=0.05)
    with pytest.raises(KeyboardInterrupt):
        runner.execute(chosen, "aiperf", said.append, quick)
    assert "starting AIPerf" in said[-1]
    assert ("near what this client can offer" in said[-1]) == warned


@pytest.mark.parametrize("left", [1, 5])
def test_a_client_that_ends_after_few_requests_leaves_the_rate_unfinished(
    service: StandIn, run: RunDirectory, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    """Killed for memory, say: its records are whole lines, and too few for a window behind the warm-up."""
    monkeypatch.setattr(runner, "_load", lambda *_: [])
    monkeypatch.setattr(runner, "read_records", lambda *_: [request(number) for number in range(left)])
    monkeypatch.setattr(runner, "settle", lambda *_: Counters({}))
    with pytest.raises(BenchmarkError, match=rf"AIPerf ended after {left} of \d+ requests; see .*aiperf.log"):
        runner.execute(run, "aiperf", lambda _: None)
    assert run.results() == []
    assert not run.complete
