"""A campaign that a signal or a failure ends: the stack is gone, what was finished is kept, RESUME=1 does the rest."""

import os
import signal

import pytest

from tests.engine.campaigns import User, eventually
from tests.shell import assert_one_clear_line


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
