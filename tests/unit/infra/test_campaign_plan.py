"""A campaign's order, what it refuses to compare, and its file."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.errors import BenchmarkError
from infra.campaign import record
from infra.campaign.finish import table
from infra.campaign.plan import OWN_NODES, check_comparable, visits
from infra.campaign.record import Campaign, CampaignFolder, Step, create, find_unfinished
from infra.campaign.voice import expected_rest_s, rest
from serving.stack import parse_settings
from serving.stack_files import load_settings

NAMES = ["a", "b", "c"]


@pytest.mark.parametrize("repeats", [2, 4, 6])
def test_drift_hits_every_stack_alike(repeats: int) -> None:
    """With an even number of repeats every stack has the same mean place in the order: a linear drift cancels."""
    order = [stack for _, stack in visits(NAMES, repeats)]
    places = {name: sum(place for place, stack in enumerate(order) if stack == name) for name in NAMES}
    assert len(set(places.values())) == 1
    assert Counter(order) == dict.fromkeys(NAMES, repeats)


def test_the_order_is_reversed_in_every_second_repeat() -> None:
    assert visits(["a", "b"], 3) == [(1, "a"), (1, "b"), (2, "b"), (2, "a"), (3, "a"), (3, "b")]


@pytest.mark.parametrize(
    ("stacks", "repeats", "said"),
    [
        ([], 1, "no stack is named"),
        (["a", "b", "a"], 1, "a is named twice"),
        (["a"], 0, "REPEATS=0"),
        (["a"], -1, "-1"),
    ],
)
def test_a_plan_that_is_none(stacks: list[str], repeats: int, said: str) -> None:
    with pytest.raises(BenchmarkError, match=said):
        visits(stacks, repeats)


def shipped(*names: str) -> Any:
    return {name: load_settings(name) for name in names}


def test_shipped_stacks_of_one_size_are_comparable() -> None:
    assert check_comparable(shipped("local-pd-1p1d", "local-agg-2"), None, False) == []
    assert check_comparable(shipped("pd-2p1d", "agg-3"), None, False) == [OWN_NODES]
    assert check_comparable(shipped("pd-2p1d"), None, False) == []


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("pd-2p1d", "agg-2"), "pd-2p1d has 24 GPUs, agg-2 has 16 GPUs; UNEQUAL_GPUS=1"),
        (("pd-1p1d", "deepseek-agg-2"), "pd-1p1d serves qwen3-235b-a22b-fp8, deepseek-agg-2 serves deepseek-v3-0324"),
        (("pd-1p2d", "agg-3"), "pd-1p2d is measured with qwen-8k-1k, agg-3 is measured with qwen-16k-1k; name one"),
        (("pd-2p1d", "mi325x-4node"), "mi325x-4node owns nodes and serves nothing"),
    ],
)
def test_what_cannot_be_compared_is_one_line(names: tuple[str, ...], said: str) -> None:
    with pytest.raises(BenchmarkError, match=said):
        check_comparable(shipped(*names), None, False)


def test_what_the_user_says_about_it() -> None:
    check_comparable(shipped("pd-2p1d", "agg-2"), None, True)
    check_comparable(shipped("pd-1p2d", "agg-3"), "qwen-8k-1k", False)


def on(cluster: dict[str, Any], name: str) -> Any:
    base = {"model": "qwen3-235b-a22b-fp8", "topology": "agg-2", "scenario": "qwen-16k-1k"}
    return {name: parse_settings({**base, "cluster": cluster})}


def test_other_nodes_are_not_the_same_nodes() -> None:
    pool, other = {"provider": "stack", "stack": "mi325x-4node"}, {"provider": "stack", "stack": "else"}
    assert check_comparable(on(pool, "a") | on(pool, "b"), None, False) == []
    existing = {"provider": "existing", "kubeconfig": "/k", "context": "c"}
    assert check_comparable(on(existing, "a") | on(existing, "b"), None, False) == []
    for differs in (other, existing, {**existing, "context": "d"}, {"provider": "doks"}):
        with pytest.raises(BenchmarkError, match="put all on the same nodes"):
            check_comparable(on(pool, "a") | on(differs, "b"), None, False)


def folder(results: Path, **changes: Any) -> CampaignFolder:
    values: dict[str, Any] = {"stacks": ["a", "b"], "repeats": 2, "scenario": None, "rates": None, "notes": []}
    return create(results, **(values | changes))


def test_a_campaign_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = folder(tmp_path, scenario="rehearsal", rates="1,2", notes=["a note"])
    first = made.campaign.steps[0]
    first.phase, first.started = "up", datetime.now(UTC)
    first.seconds["up"] = 12.5
    made.save()
    found = find_unfinished(tmp_path)
    assert found.campaign == made.campaign
    assert found.path == made.path
    assert [*made.path.iterdir()] == [made.path / record.FILE], "no half-written file beside it"


def test_the_latest_unfinished_campaign_is_the_one_to_resume(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="no unfinished campaign"):
        find_unfinished(tmp_path)
    folders = {number: folder(tmp_path) for number in range(3)}
    for number, made in folders.items():  # made in the same second, whose ids do not sort
        made.campaign.id = f"2026113{number}T000000Z-0000"
        made.path = made.path.rename(made.path.with_name(made.campaign.id))
        made.save()
    latest = folders[2]
    for step in latest.campaign.steps:
        step.state = "done"
    latest.save()
    assert find_unfinished(tmp_path).campaign.id == folders[1].campaign.id


@pytest.mark.parametrize("text", ["", "{}", '{"format": 2}'])
def test_a_damaged_file_is_one_line(tmp_path: Path, text: str) -> None:
    made = folder(tmp_path)
    (made.path / record.FILE).write_text(text)
    with pytest.raises(BenchmarkError, match="is damaged or of another version"):
        find_unfinished(tmp_path)


def test_only_one_campaign_works_in_a_folder(tmp_path: Path) -> None:
    with record.only_one(tmp_path), pytest.raises(BenchmarkError, match="another campaign"), record.only_one(tmp_path):
        pass
    with record.only_one(tmp_path):
        pass


def campaign(*steps: Step) -> Campaign:
    return Campaign(id="x", started=datetime.now(UTC), stacks=["a", "b"], repeats=2, steps=list(steps))


def done(repeat: int, stack: str, up: float, benchmark: float, destroy: float, faults: list[str] | None = None) -> Step:
    seconds: Any = {"up": up, "benchmark": benchmark, "destroy": destroy}
    return Step(repeat=repeat, stack=stack, state="done", seconds=seconds, run=f"{stack}/{repeat}", faults=faults or [])


def test_what_is_left_is_expected_to_take_what_it_took() -> None:
    first, second = done(1, "a", 10, 100, 1), Step(repeat=1, stack="b")
    both = campaign(first, second, Step(repeat=2, stack="b"), Step(repeat=2, stack="a"))
    assert expected_rest_s(both, second) == pytest.approx(3 * 111)
    second.seconds = {"up": 30}  # its own time counts from now on, and its `up` is over
    assert expected_rest_s(both, second) == pytest.approx((100 + 1) + (30 + 100 + 1) + (10 + 100 + 1))
    assert rest(both, second) == "about 5 min 43 s to go"


def test_before_anything_is_known_no_time_is_promised() -> None:
    alone = Step(repeat=1, stack="a")
    assert expected_rest_s(campaign(alone), alone) is None
    assert "known after the first step" in rest(campaign(alone), alone)


def test_unusable_runs_are_told_apart(tmp_path: Path) -> None:
    steps = [done(1, "a", 1, 1, 1), done(2, "a", 1, 1, 1, ["2 req/s: it grows"]), Step(repeat=1, stack="b", run="b/1")]
    mixed = campaign(*steps)
    assert mixed.runs("a") == ["a/1"]
    assert mixed.runs("a", usable=False) == ["a/1", "a/2"]
    assert mixed.runs("b", usable=False) == [], "an unfinished run is none"
    column = table(CampaignFolder(tmp_path, mixed)).columns[-1]
    assert list(column.cells) == ["usable", "fault", "planned"]
