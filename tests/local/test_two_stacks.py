"""A second stack is interrupted beside the prefill/decode one."""

from pathlib import Path

from tests.local.deployment import Deployment, processes_of


def test_ctrl_c_leaves_nothing(aggregated_stack: Deployment, pd: Deployment) -> None:
    stack = aggregated_stack
    stack.shell.write_stack(stack.stack, topology="agg-1")
    before = _running_heads()
    assert pd.head()["directory"] in before
    stopped = stack.shell.interrupt(f"exec pulumi up --yes --stack {stack.stack}", after="replicas LLMServer")
    assert stopped.code != 0
    assert "Traceback" not in stopped.text
    assert _running_heads() == before, "something of the interrupted update is still there"


def _running_heads() -> set[str]:
    """Directories of local Ray heads, this machine's other users' included, that have processes."""
    heads = (log.parent for log in Path("/tmp").glob("pd-*/head.log"))
    return {str(head) for head in heads if processes_of(str(head))}
