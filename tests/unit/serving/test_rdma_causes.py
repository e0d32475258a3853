"""Why a run failed, when its logs show it, and what to do."""

from typing import Any

import pytest
from rdma_gate_logs import ENVIRONMENT, gate_run, side_log, with_log

from serving.rdma_gate.gate_run import Cause
from serving.rdma_gate.verdict import judge


def error(text: str) -> str:
    return f"[1795986420.300000] [node:1395 :0]   somewhere.c:1    UCX  {text}\n"


@pytest.mark.parametrize(
    ("line", "environment", "what", "fix"),
    [
        ("ERROR ROCm dmabuf support requested but not found", ENVIRONMENT, "/boot/config", "mount the node's /boot"),
        (
            "ERROR ibv_reg_mr(address=0x7f, length=16, access=0xf) failed: Invalid argument",
            ENVIRONMENT.replace("DMABUF=y", "DMABUF=n"),
            "no peer memory",
            "set UCX_ROCM_COPY_DMABUF=y",
        ),
        ("ERROR Transport retry count exceeded on mlx5_0:1/RoCE", ENVIRONMENT, "wrong GID", "RoCE v2"),
        ("WARN  network device 'mlx5_0:1' is not available", ENVIRONMENT, "mlx5_0:1: not in the container", "pod"),
        ("WARN  transport 'rc' is not available", ENVIRONMENT, "rc: UCX was built without it", "ucx_info -d"),
        ("ERROR Destination is unreachable", "UCX_TLS=rc,sm,self", "no rocm_copy", "add rocm_copy"),
        ("ERROR Destination is unreachable", ENVIRONMENT, "no route", "UCX_IB_ROCE_REACHABILITY_MODE=all"),
    ],
)
def test_the_cause_is_named_with_what_to_do(line: str, environment: str, what: str, fix: str) -> None:
    log = error(line) + side_log("client", ["rc_mlx5/mlx5_0:1"], environment=environment)
    verdict = judge(with_log(gate_run(environment=environment), "client", log))
    assert verdict.cause is not None
    assert what in verdict.cause.what
    assert fix in verdict.cause.fix


def test_a_nic_in_a_vrf_with_an_old_ucx_is_named() -> None:
    log = gate_run().client.log.replace("Version 1.22.0", "Version 1.19.0")
    verdict = judge(with_log(gate_run(), "client", error("ERROR Destination is unreachable") + log))
    assert verdict.cause is not None
    assert "VRF" in verdict.cause.what


def cause(environment: str, **said: Any) -> Cause | None:
    return judge(gate_run(environment=environment, **said)).cause


def test_staged_gpu_memory_is_explained_by_how_dmabuf_is_set() -> None:
    off = cause(ENVIRONMENT.replace(" UCX_ROCM_COPY_DMABUF=y", ""), description="software emulation rocm_copy")
    on = cause(ENVIRONMENT, description="software emulation rocm_copy")
    assert off is not None
    assert on is not None
    assert "set UCX_ROCM_COPY_DMABUF=y" in off.fix
    assert "kernel's dma-buf options" in on.fix


@pytest.mark.parametrize(
    ("transports", "allowed"),
    [
        ("rc,sm,self,rocm_copy", True),
        ("rc,sm,self,rocm", True),
        ("all", True),
        ("^tcp", True),
        ("^rocm_copy,rocm", False),
        ("rc,sm,self", False),
        ("rc,sm,self,cuda_copy", False),
    ],
)
def test_the_copy_transport_is_found_in_every_form_of_ucx_tls(transports: str, allowed: bool) -> None:
    found = cause(f"UCX_TLS={transports} UCX_PROTO_EMULATION_ENABLE=n", bandwidth=1.0)
    assert (found is None) is allowed
    assert found is None or "no rocm_copy" in found.what


def test_tcp_is_blamed_on_ucx_tls_as_it_was_set() -> None:
    environment = ENVIRONMENT.replace("rc,sm", "rc,tcp,sm")
    found = judge(gate_run(lanes=["tcp/eth0"], environment=environment)).cause
    assert found is not None
    assert "UCX_TLS=rc,tcp,sm,self" in found.what


def test_a_run_that_passes_has_no_cause() -> None:
    assert judge(gate_run()).cause is None
