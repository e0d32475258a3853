"""What UCX may use to move KV."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.nics import ethernet_alone
from serving.guards.transfer import asks_for_rdma, by_ucx
from serving.guards.view import Engine, View
from serving.ucx_transports import RDMA, TCP, allowed

_COPY = {"rocm": "rocm_copy", "cuda": "cuda_copy"}
_OTHERS = {"rocm": ("cuda", "cuda_copy", "cuda_ipc", "gdr_copy"), "cuda": ("rocm", "rocm_copy", "rocm_ipc", "rocm_gdr")}


@guard(
    "ucx-tcp",
    "error",
    what="UCX_TLS lets UCX use TCP, on nodes with GPUs and where RDMA is meant",
    silently="where RDMA does not work, KV goes over TCP, up to 19 times slower, and every request is answered",
    fix="leave `tcp` out of UCX_TLS, and `^` and `all` too: `rc,sm,self,rocm_copy,rocm_ipc` on ROCm",
    source="vllm#52607; ROCm/legacy-rocm-build#6566; openucx ucp_context.c (1.22)",
)
def ucx_tcp(view: View) -> Iterator[Found]:
    if view.platform not in ("rocm", "cuda"):
        return
    for engine in view.moving():
        named = engine.variable("UCX_TLS")
        if named is None or "$" in named or not (allowed(named) & TCP and by_ucx(engine)):
            continue
        if allowed(named) & RDMA or asks_for_rdma(engine):
            yield engine.environment["UCX_TLS"], f"UCX_TLS={named}"


@guard(
    "ucx-tcp-alone",
    "warning",
    what="Engines with GPUs are told to move KV over TCP, and nothing of them asks for RDMA",
    silently="KV moves up to 19 times slower, since a read over TCP is emulated in software; every request is answered",
    fix="on nodes with RDMA NICs ask for these, and write `rc,sm,self,rocm_copy,rocm_ipc` on ROCm; without such NICs "
    "NixlPushConnector of vLLM 0.29 writes, which TCP does itself",
    source="vllm#52607 (without RDMA reads are 100 times slower than writes); ROCm/legacy-rocm-build#6566; "
    "run with UCX 1.22 over TCP: get is `software emulation`, put is not",
)
def ucx_tcp_alone(view: View) -> Iterator[Found]:
    for engine in view.moving() if view.platform in ("rocm", "cuda") else ():
        named, names = engine.variable("UCX_TLS"), ethernet_alone(engine)
        if not by_ucx(engine) or asks_for_rdma(engine) or "$" in (named or "") or allowed(named or "") & RDMA:
            continue
        if named and allowed(named) & TCP:
            yield engine.environment["UCX_TLS"], f"UCX_TLS={named}"
        elif not named and names and not any(name.startswith("fabric") for name in names):
            yield engine.environment["UCX_NET_DEVICES"], f"UCX_NET_DEVICES={','.join(names)}"


@guard(
    "ucx-without-gpu-copy",
    "error",
    what="UCX_TLS leaves out the transport without which UCX cannot reach GPU memory",
    silently="engines start; the first transfer fails with `Destination is unreachable`",
    fix="add rocm_copy on ROCm, cuda_copy on CUDA",
    source="openucx ucp_context.c (1.22); llm-d's AMD overlay for OCI lists cuda_copy on ROCm",
)
def ucx_without_gpu_copy(view: View) -> Iterator[Found]:
    needed = _COPY.get(view.platform or "")
    for engine in view.moving() if needed else ():
        named = engine.variable("UCX_TLS")
        if not named or "$" in named or not by_ucx(engine):
            continue
        if needed not in allowed(named) and not _in_host_memory(engine):
            yield engine.environment["UCX_TLS"], f"UCX_TLS={named} has no {needed}"


def _in_host_memory(engine: Engine) -> bool:
    device = (engine.kv or {}).get("kv_buffer_device")
    return device is not None and device.value == "cpu"


@guard(
    "ucx-of-other-vendor",
    "warning",
    what="UCX_TLS names transports of another vendor's GPUs",
    silently="UCX warns that they are not available and goes on with what is left",
    fix="rocm_copy and rocm_ipc on ROCm; cuda_copy and cuda_ipc on CUDA",
    source="openucx ucp_context.c (1.22); llm-d's AMD overlay for OCI (cuda_copy)",
)
def ucx_of_other_vendor(view: View) -> Iterator[Found]:
    others = _OTHERS.get(view.platform or "", ())
    for engine in view.moving():
        named = engine.variable("UCX_TLS") or ""
        wrong = [name for name in others if name in [part.strip() for part in named.split(",")]]
        if wrong and not named.strip().startswith("^"):
            yield engine.environment["UCX_TLS"], f"{', '.join(wrong)} on {view.platform}"
