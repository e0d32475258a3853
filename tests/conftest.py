"""Fixtures of all tiers."""

import os
import signal
import socket
from pathlib import Path

import pytest

from tests.shell import ROOT, Shell, copy_of_checkout

# A test run in the background inherits an ignored SIGINT, and so would the commands whose Ctrl-C is tested.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell in a fresh copy of the checkout, which borrows this one's environment."""
    return new_shell(tmp_path)


def new_shell(place: Path) -> Shell:
    """Such a shell whose checkout and home are in `place`."""
    checkout = copy_of_checkout(place / "checkout")
    (checkout / ".venv").symlink_to(ROOT / ".venv")
    return Shell(checkout, place / "home")


@pytest.fixture
def port_base() -> int:
    """The first of 400 ports of which none of Ray's is in use."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return free_port_base(26000 + 1600 * worker, 27600 + 1600 * worker)


def free_port_base(first: int, end: int) -> int:
    """A free one in a range; tests that run beside each other have a range each, and no race for the same."""
    for base in range(first, end, 400):
        if ports_are_free(base):
            return base
    raise AssertionError("no 400 free ports")


def ports_are_free(base: int) -> bool:
    """Whether nothing listens on the ports a local stack with this portBase takes, on any address of this machine."""
    return all(_free(port) for port in (*range(base, base + 12), base + 100, base + 200, base + 300))


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
