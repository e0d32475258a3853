"""A campaign that `kill -9` ends: what was finished is kept, and RESUME=1 does the rest and nothing twice."""

import os
import signal
import subprocess

from tests.engine.campaigns import User, eventually, gone


def test_kill_9_at_every_step_of_one_campaign(user: User) -> None:
    """While its stack comes up, while it measures, while the stack goes; each time RESUME=1 goes on from there."""
    user.cluster.outcome = "DEPLOYING"
    user.kills(after="replicas")
    engine = user.record.steps[0].engine
    assert engine is not None
    assert not gone(engine.pid)

    # Pulumi goes on to the end of its update; who resumes waits for that. Then it measures, and is killed again.
    user.control(seconds=300)
    with user.starts("--resume") as resumed:
        _say(resumed, "still works on pd")
        user.cluster.outcome = "RUNNING"
        _say(resumed, "the stand-in measures")
        resumed.send_signal(signal.SIGKILL)
    run = user.record.steps[0].run
    assert run is not None
    assert user.measured == ["pd"]
    assert user.cluster.configs != {}

    # The stack stayed up, and what was measured on it counts.
    user.control()
    user.cluster.lingers = True
    with user.starts("--resume") as resumed:
        _say(resumed, "was cut off in its benchmark")
        _say(resumed, "the replicas of 'llm' to end")
        resumed.send_signal(signal.SIGKILL)
    assert user.measured == ["pd", "pd"]
    user.cluster.lingers = False

    done = user.campaign("--resume")
    assert done.code == 0, done.text
    assert user.measured == ["pd", "pd"], "nothing more is measured"
    first = user.record.steps[0]
    assert (first.run, first.given_up) == (run, [])
    assert user.nothing_is_up()


def _say(process: "subprocess.Popen[str]", text: str) -> None:
    """Read on until it has said this."""
    assert process.stdout is not None
    said = ""
    while text not in said:
        line = process.stdout.readline()
        assert line, f"it ended before it said {text!r}:\n{said}"
        said += line


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
