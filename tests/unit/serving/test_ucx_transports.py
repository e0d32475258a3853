"""What a value of UCX_TLS allows, and that all who ask get the same answer."""

import pytest

from serving.ucx_transports import RDMA, TCP, WITHIN_NODE, allowed


@pytest.mark.parametrize(
    ("value", "rdma", "tcp", "within_node"),
    [
        ("rc,sm,self,rocm_copy,rocm_ipc", True, False, True),
        ("tcp,self", False, True, False),
        ("tcp,sm,self", False, True, True),
        ("all", True, True, True),
        ("rc,all", True, True, True),
        ("rc, tcp", True, True, False),
        ("rc,tcp:aux", True, True, False),
        ("dc_x,ud_verbs", True, False, False),
        ("rocm", False, False, True),
        ("self", False, False, False),
        ("", False, False, False),
        ("^ib", False, True, True),
        ("^cma", True, True, True),
        ("^rc,ud,dc", False, True, True),
        ("^rc", True, True, True),
        ("^rc,sm,tcp", True, False, True),  # ud, dc; and between GPUs
        ("^tcp", True, False, True),
        ("^ tcp", True, False, True),
        ("^tcp:aux", True, True, True),
        ("^all", False, False, False),
    ],
)
def test_what_ucx_may_use(value: str, rdma: bool, tcp: bool, within_node: bool) -> None:
    names = allowed(value)
    assert (bool(names & RDMA), bool(names & TCP), bool(names & WITHIN_NODE)) == (rdma, tcp, within_node)


@pytest.mark.parametrize(
    ("value", "copies"),
    [("rocm", True), ("rocm_copy", True), ("^rocm", False), ("^rocm_copy", False), ("^rocm_ipc", True), ("rc", False)],
)
def test_the_copies_of_an_alias(value: str, copies: bool) -> None:
    assert ("rocm_copy" in allowed(value)) is copies
