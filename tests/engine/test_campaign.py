"""`make campaign` with the real Pulumi: order, and what is left when something ends it. What it measures is a stand-in.

Every test that ends a campaign early looks at three things: that the stack is gone, that what was finished is kept, and
that RESUME=1 does the rest and nothing twice.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.campaigns import Cluster, User, eventually, gone
from tests.shell import Shell, assert_one_clear_line


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.close()


@pytest.fixture
def user(shell: Shell, cluster: Cluster, tmp_path: Path) -> User:
    return User(shell, cluster, tmp_path / "token")


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


def test_ctrl_c_while_a_stack_comes_up(user: User) -> None:
    user.cluster.outcome = "DEPLOYING"
    ended = user.interrupts("pd --repeats 1", after="replicas")
    assert ended.code == 130, ended.text
    assert "waiting for pulumi up to clean up" in ended.text
    assert "pd is destroyed" in ended.text
    assert "Traceback" not in ended.text
    assert user.nothing_is_up()

    user.cluster.outcome = "RUNNING"
    resumed = user.campaign("--resume")
    assert resumed.code == 0, resumed.text
    assert user.measured == ["pd"]
    assert user.nothing_is_up()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_benchmark_is_done_again_on_a_new_deployment(user: User, number: int) -> None:
    with user.measuring() as process:
        os.killpg(process.pid, number)
        text, _ = process.communicate(timeout=60)
    assert process.returncode == 130, text
    assert "0 of 1 steps kept, `make campaign RESUME=1` goes on" in text
    assert user.nothing_is_up()
    first = user.record.steps[0]
    assert (first.state, first.deployed) == ("interrupted", False)

    user.control()
    resumed = user.campaign("--resume")
    assert resumed.code == 0, resumed.text
    assert user.measured == ["pd", "pd"]
    again = user.record.steps[0]
    assert again.given_up == [first.run], "the run of a deployment that is gone is not continued"
    assert again.run != first.run


def test_two_impatient_ctrl_c_leave_the_command_that_cleans_up(user: User) -> None:
    user.cluster.lingers = True
    with user.measuring() as process:
        os.killpg(process.pid, signal.SIGINT)
        eventually(lambda: user.cluster.configs == {}, "it is being destroyed")
        os.killpg(process.pid, signal.SIGINT)
        text, _ = process.communicate(timeout=60)
    assert process.returncode == 130, text
    assert "pd is NOT destroyed" in text
    assert "`pulumi destroy --stack pd` does it" in text
    assert user.record.steps[0].deployed

    user.cluster.lingers = False
    user.control()
    resumed = user.campaign("--resume")
    assert resumed.code == 0, resumed.text
    assert user.measured == ["pd", "pd"]
    assert user.nothing_is_up()


def test_a_stack_that_does_not_come_up(user: User) -> None:
    user.cluster.outcome = "DEPLOY_FAILED"
    user.cluster.message = "ValueError: no memory for the KV cache"
    failed = user.campaign("pd --repeats 1")
    assert failed.code == 1
    assert_one_clear_line(failed, "error: step 1 of 1 (repeat 1 of 1, pd): pulumi up of pd failed", "no memory")
    assert user.nothing_is_up()
    assert user.measured == []

    user.cluster.outcome = "RUNNING"
    assert user.campaign("pd --repeats 1 --resume").code == 0
    assert user.measured == ["pd"]


def test_a_benchmark_that_fails(user: User) -> None:
    user.control(fail="http://127.0.0.1:1 does not answer")
    failed = user.campaign("pd --repeats 1")
    assert failed.code == 1
    assert_one_clear_line(failed, "error: step 1 of 1", "does not answer", "0 of 1 steps kept", "RESUME=1")
    assert user.nothing_is_up()

    user.control()
    assert user.campaign("--resume").code == 0
    assert user.measured == ["pd", "pd"]


def test_kill_9_while_a_stack_comes_up(user: User) -> None:
    """Pulumi goes on to the end of its update; who resumes waits for that."""
    user.cluster.outcome = "DEPLOYING"
    user.kills(after="replicas")
    engine = user.record.steps[0].engine
    assert engine is not None
    assert not gone(engine.pid)

    with user.starts("--resume") as resumed:
        assert resumed.stdout is not None
        while "still works on pd" not in (line := resumed.stdout.readline()):
            assert line
        user.cluster.outcome = "RUNNING"
        text, _ = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, text
    assert user.measured == ["pd"]
    assert user.nothing_is_up()


def test_kill_9_of_pulumi_too(user: User) -> None:
    """The lock that it leaves is taken away, since nobody else has it."""
    user.cluster.outcome = "DEPLOYING"
    user.kills(after="replicas")
    engine = user.record.steps[0].engine
    assert engine is not None
    os.killpg(engine.pid, signal.SIGKILL)
    eventually(lambda: gone(engine.pid), "pulumi is dead")

    user.cluster.outcome = "RUNNING"
    resumed = user.campaign("--resume")
    assert resumed.code == 0, resumed.text
    assert user.measured == ["pd"]
    assert user.nothing_is_up()


def test_kill_9_while_it_measures(user: User) -> None:
    """The stack stayed up, and what was measured on it counts."""
    user.control(seconds=300)
    user.kills(after="the stand-in measures")
    run = user.record.steps[0].run
    assert run is not None
    assert user.cluster.configs != {}

    user.control()
    resumed = user.campaign("--resume")
    assert resumed.code == 0, resumed.text
    assert "was cut off in its benchmark" in resumed.text
    assert user.measured == ["pd", "pd"]
    first = user.record.steps[0]
    assert (first.run, first.given_up) == (run, [])
    assert user.nothing_is_up()


def test_kill_9_while_it_measures_and_the_deployment_is_gone(user: User) -> None:
    """What is deployed anew is measured anew."""
    user.control(seconds=300)
    user.kills(after="the stand-in measures")
    run = user.record.steps[0].run
    user.cluster.configs.clear()

    user.control()
    assert user.campaign("--resume").code == 0
    first = user.record.steps[0]
    assert first.given_up == [run]
    assert first.run != run


def test_kill_9_while_a_stack_goes(user: User) -> None:
    user.cluster.lingers = True
    user.kills(after="the replicas of 'llm' to end")
    user.cluster.lingers = False

    resumed = user.campaign("--resume")
    assert resumed.code == 0, resumed.text
    assert user.measured == ["pd"], "nothing is measured twice"
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
