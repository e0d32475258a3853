"""`make campaign` with the real Pulumi: order, and what it refuses. What it measures is a stand-in."""

import os
import signal

from tests.engine.campaigns import User
from tests.shell import assert_one_clear_line


def test_stacks_take_turns_and_leave_nothing(user: User) -> None:
    assert user.shell.run("pulumi stack select agg").ok
    done = user.campaign("pd agg --rates 2")
    assert done.code == 0, done.text
    # Backwards every second time, so that drift hits both.
    assert user.measured == ["pd", "agg", "agg", "pd"]
    assert user.cluster.most == 1
    assert user.nothing_is_up()
    record = user.record
    assert record.done
    for step in record.steps:
        assert set(step.seconds) == {"up", "benchmark", "destroy"}
        assert step.run is not None
        assert (user.shell.checkout / "results" / step.run / "run.json").exists()
    assert len(record.runs("pd")) == len(record.runs("agg")) == 2
    assert "step 4 of 4 (repeat 2 of 2, pd): pulumi destroy of pd; about" in done.text
    assert "pd: 2 of 2 runs usable" in done.text
    assert user.shell.run("pulumi stack --show-name").text.strip() == "agg", "the user's own selection"


def test_an_unusable_run_is_told_and_has_its_exit_code(user: User) -> None:
    user.control(faults=["2 req/s: the queue still grows"])
    done = user.campaign("pd --repeats 1")
    assert done.code == 3, done.text
    assert f"fault {user.record.steps[0].run}: 2 req/s: the queue still grows" in done.text
    assert "pd: 0 of 1 runs usable" in done.text
    assert user.record.done
    assert user.nothing_is_up()


def test_one_campaign_at_a_time(user: User) -> None:
    with user.measuring() as process:
        for arguments in ("pd agg", "--resume"):
            assert_one_clear_line(user.campaign(arguments), "another campaign works in results/campaigns")
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
    assert user.nothing_is_up()


def test_bad_input_changes_nothing(user: User) -> None:
    shell = user.shell
    cases = [
        ("", "no stack is named"),
        ("pd pd", "pd is named twice"),
        ("pd nope", "there is no stack called nope", "make stacks"),
        ("pd agg --repeats 0", "REPEATS=0"),
        ("pd agg --scenario nope", "no scenario called 'nope'"),
        ("pd agg --rates fast", "--rates 'fast'"),
        ("pd agg --results /proc/nowhere", "cannot write to /proc/nowhere"),
        ("--resume", "no unfinished campaign"),
    ]
    for arguments, *words in cases:
        answer = user.campaign(arguments)
        assert_one_clear_line(answer, "error: ", *words)
        assert len(answer.text.splitlines()) == 1, answer.text
    for change, *words in [
        ({"topology": "agg-1"}, "pd has 2 replicas, agg has 1 replicas", "UNEQUAL_GPUS=1"),
        ({"scenario": "qwen-8k-1k"}, "pd is measured with rehearsal, agg is measured with qwen-8k-1k", "SCENARIO="),
        ({"scenario": "nope"}, "stack agg: pd-mi325x:scenario", "unknown scenario 'nope'"),
        ({"model": None}, "stack agg: pd-mi325x:model", "is required"),
        ({"ray": {**user.ray, "address": "http://127.0.0.1:9"}}, "is on the Ray cluster at", "the same nodes"),
    ]:
        before = (shell.checkout / "Pulumi.agg.yaml").read_text()
        shell.write_stack("agg", **change)
        answer = user.campaign()
        assert_one_clear_line(answer, "error: ", *words)
        (shell.checkout / "Pulumi.agg.yaml").write_text(before)
    user.cluster.version = "2.9.9"
    assert_one_clear_line(user.campaign(), "error: pulumi preview of pd failed", "2.9.9")
    assert user.cluster.puts == 0
    assert user.campaigns == []


def test_a_stack_that_is_up_is_left_alone(user: User) -> None:
    assert user.shell.run("pulumi up --yes --skip-preview --stack agg").ok
    assert_one_clear_line(user.campaign(), "agg is up already", "pulumi destroy --stack agg")
    assert user.cluster.configs != {}
    assert user.campaigns == []


def test_resuming_asks_for_the_same(user: User) -> None:
    user.control(fail="no")
    assert user.campaign("pd agg --repeats 1").code == 1
    for arguments, *words in [
        ("agg pd --resume", "has STACKS=pd agg"),
        ("--repeats 2 --resume", "has REPEATS=1"),
        ("--rates 1 --resume", "has RATES=(none)"),
    ]:
        assert_one_clear_line(user.campaign(arguments), "error: the unfinished campaign", *words)
    file = user.campaigns[0]
    file.write_text(file.read_text()[:-40])
    assert_one_clear_line(user.campaign("--resume"), "campaign.json is damaged")
