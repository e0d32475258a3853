"""Whose process is named when a port of a local Ray head is in use."""

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from infra.provider.busy_ports import busy_ports

# The words of a supervisor's command line; what it would run is a sleep.
_PROGRAM = "import time; print('up', flush=True); time.sleep(60)"


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("own", [True, False])
def test_only_a_head_of_that_port_may_be_ended(port: int, own: bool) -> None:
    """The head of another stack uses others, and has done nothing."""
    flag = f"--dashboard-port={port if own else port + 1}"
    words = [sys.executable, "-c", _PROGRAM, "infra.provider.supervisor", "ray", "start", flag]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as head:
        assert head.stdout
        head.stdout.readline()
        line = busy_ports({"dashboard": port})
        head.kill()
    assert line.startswith(f"ports in use: {port} (dashboard)")
    assert (f"kill {head.pid})" in line) is own
    assert busy_ports({}) == ""
