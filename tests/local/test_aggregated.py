"""The aggregated stack beside the prefill/decode one: interrupted, started again, and compared token by token."""

from pathlib import Path

from tests.local.conftest import destroy, new_deployment
from tests.local.deployment import PROMPT_LENGTHS, Deployment, processes_of
from tests.shell import Shell


def test_ctrl_c_leaves_nothing_then_the_same_tokens_come_out_of_both(user: Shell, pd: Deployment) -> None:
    aggregated = new_deployment(user, "local-agg-2")
    before = _running_heads()
    assert pd.head()["directory"] in before
    stopped = user.interrupt(f"exec pulumi up --yes --stack {aggregated.stack}", after="replicas LLMServer")
    assert stopped.code != 0
    assert "Traceback" not in stopped.text
    assert _running_heads() == before, "something of the interrupted update is still there"

    try:
        aggregated.pulumi("up --yes", 900)
        ours, theirs = aggregated.answers(), pd.answers()
        for length, one, other in zip(PROMPT_LENGTHS, ours, theirs, strict=True):
            assert one == other, f"a prompt of {length} tokens is answered differently"
    finally:
        destroy(aggregated)


def _running_heads() -> set[str]:
    """Directories of local Ray heads, this machine's other users' included, that have processes."""
    return {str(place) for place in Path("/tmp").glob("pd-*") if processes_of(str(place))}
