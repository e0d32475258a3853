"""The aggregated stack beside the prefill/decode one: interrupted, started again, compared token by token, orphaned."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.conftest import destroy, new_deployment
from tests.local.deployment import PROMPT_LENGTHS, Deployment, processes_of
from tests.shell import Shell


@pytest.fixture(scope="module")
def stack(user: Shell) -> Iterator[Deployment]:
    """The shipped aggregated stack on ports of its own, not deployed."""
    deployment = new_deployment(user, "local-agg-2")
    yield deployment
    destroy(deployment)


@pytest.fixture(scope="module")
def aggregated(stack: Deployment) -> Deployment:
    """`pulumi up` of it."""
    stack.pulumi("up --yes", 900)
    return stack


def test_ctrl_c_leaves_nothing(stack: Deployment, pd: Deployment) -> None:
    before = _running_heads()
    assert pd.head()["directory"] in before
    stopped = stack.shell.interrupt(f"exec pulumi up --yes --stack {stack.stack}", after="replicas LLMServer")
    assert stopped.code != 0
    assert "Traceback" not in stopped.text
    assert _running_heads() == before, "something of the interrupted update is still there"


def test_the_same_tokens_come_out_of_both(aggregated: Deployment, pd: Deployment) -> None:
    ours, theirs = aggregated.answers(), pd.answers()
    for length, one, other in zip(PROMPT_LENGTHS, ours, theirs, strict=True):
        assert one == other, f"a prompt of {length} tokens is answered differently"


def test_a_head_whose_supervisor_was_killed_is_found_again_and_ended(aggregated: Deployment) -> None:
    """kill -9 on the supervisor leaves Ray and the engines running: the next `pulumi destroy` ends them all."""
    before = aggregated.head()
    os.kill(before["supervisor"]["pid"], signal.SIGKILL)
    assert any("VLLM" in process for process in processes_of(before["directory"]))
    aggregated.pulumi("refresh --yes")
    assert aggregated.head()["directory"] == before["directory"], "refresh forgot processes that are still running"
    destroy(aggregated)


def _running_heads() -> set[str]:
    """Directories of local Ray heads, this machine's other users' included, that have processes."""
    heads = (log.parent for log in Path("/tmp").glob("pd-*/head.log"))
    return {str(head) for head in heads if processes_of(str(head))}
