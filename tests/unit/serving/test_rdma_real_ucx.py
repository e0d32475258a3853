"""UCX's real ucx_perftest, run by the gate's own driver over what this machine has. None of it is RDMA: nothing passes.

Small and few messages, as the verdict is not about speed; the rest of the command is what the gate's pods run.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

from serving.rdma_gate.pairs import Pair
from serving.rdma_gate.result import RunResult, Terms, results_of
from serving.stack_files import ROOT
from tools.toolchain.items import path

DRIVER = """
import sys
from serving.rdma_gate import run
run.MESSAGE_SIZE, run.ITERATIONS, run._WARM_UP, run.PORT = 2**20, 5, 1, int(sys.argv[1])
run.FIRST_SECONDS = run._SERVER_SECONDS = run.RUN_SECONDS = 20
sys.exit(run.main(sys.argv[2:]))
"""


def gate(device: str, *, memory: str = "host", libraries: Path | None = None, **variables: str) -> RunResult:
    """What the gate says of a run between two processes of this machine, told that they are on two nodes."""
    (wheel,) = path("ucx").glob("lib/python*/site-packages/libucx")
    env = {name: value for name, value in os.environ.items() if not name.startswith("UCX_")}
    env |= {"PATH": f"{wheel / 'bin'}:{env['PATH']}", "LD_LIBRARY_PATH": str(libraries or wheel / "lib"), **variables}
    port = _free_port()
    command = [sys.executable, "-c", DRIVER, str(port)]
    arguments = ["--devices", device, "--memory", memory]
    ends = [
        subprocess.Popen([*command, *words, *arguments], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        for words in (["server"], ["client", "--peer", "127.0.0.1"])
    ]
    server, client = (end.communicate(timeout=90)[0] for end in ends)
    (result,) = results_of(Pair(0, "a", "b"), Terms((device,), memory, floor_gbps=0.001), client, server)  # pyright: ignore[reportArgumentType]
    return result


def test_tcp_fails_by_name_though_it_ends_well_and_is_fast_enough() -> None:
    result = gate("lo", UCX_TLS="tcp")
    assert not result.passed
    assert "over tcp/lo" in result.why
    assert result.gbps is not None
    assert result.gbps > result.floor_gbps
    assert "UCX_TLS=tcp lets UCX fall back to tcp" in result.cause


def test_shared_memory_fails_though_no_line_of_it_is_an_error() -> None:
    result = gate("all", UCX_TLS="shm")
    assert not result.passed
    assert "both ends are on one node: intra-node" in result.why
    assert "/memory" in result.why


def test_a_nic_that_is_not_there_is_named() -> None:
    result = gate("mlx5_0:1")
    assert not result.passed
    assert "network device 'mlx5_0:1' is not available" in result.why
    assert "not in the container, or not a device of this node" in result.cause


def test_rdma_that_this_ucx_does_not_have_fails() -> None:
    result = gate("lo", UCX_TLS="rc")
    assert not result.passed
    assert result.gbps is None
    assert "transport 'rc' is not available" in result.why


def test_an_exit_code_of_0_and_a_good_figure_do_not_hide_errors() -> None:
    result = gate("lo", UCX_TLS="tcp", UCX_PROTO_EMULATION_ENABLE="n")
    assert not result.passed
    assert result.gbps is not None
    assert "No zero-copy protocol found" in result.why


def test_a_program_that_cannot_be_loaded_says_so(tmp_path: Path) -> None:
    result = gate("lo", libraries=tmp_path)
    assert not result.passed
    assert "error while loading shared libraries" in result.why


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
