"""A campaign that `kill -9` ends: what was finished is kept, and RESUME=1 does the rest and nothing twice."""

import os
import signal

from tests.engine.campaigns import User, eventually, gone


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
