"""Settings of UCX that are off, too old, or without effect on how NIXL moves KV."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from serving.guards.guard import Found, guard
from serving.guards.transfer import by_nixl, known, ucx_version, whole
from serving.guards.view import Engine, View
from serving.ucx_transports import RDMA, allowed

_DMABUF = "UCX_ROCM_COPY_DMABUF"
_ON = ("y", "yes", "1")  # ucs_config_sscanf_bool of ucs/config/parser.c; case does not matter


@guard(
    "ucx-dmabuf-off",
    "warning",
    what=f"{_DMABUF} is not y: GPU-direct RDMA through dma-buf is off",
    silently="on kernels without peer memory KV goes GPU, host, NIC, host, GPU; `try` gives up without a word",
    fix=f"set {_DMABUF}=y, which fails loudly where the kernel cannot, and mount /boot read-only for UCX's look at it",
    source="openucx#11957, #11934 (on by default from 1.23); rocm_copy_md.c 424-434 and rocm_base.c of 1.22",
)
def ucx_dmabuf_off(view: View) -> Iterator[Found]:
    version = known(view, "ucx")
    if view.platform != "rocm" or (version is not None and version >= Version("1.23")):
        return
    for engine in view.moving():
        if not by_nixl(engine):
            continue
        given = engine.environment.get(_DMABUF)
        if given is None:
            # Where nothing says that RDMA is meant, and where the image may set it, nothing is said.
            if _meant_for_rdma(engine):
                yield engine.environment.get("UCX_TLS") or whole(engine), f"{_DMABUF} is not set"
        elif (value := engine.variable(_DMABUF)) is not None and value.strip().lower() not in _ON:
            yield given, f"{_DMABUF}={value}"


def _meant_for_rdma(engine: Engine) -> bool:
    """Whether UCX is told to use RDMA and GPU memory by name: then the other settings are chosen as well."""
    named = engine.variable("UCX_TLS")
    return bool(named and "rocm" in named and not named.strip().startswith("^") and allowed(named) & RDMA)


@guard(
    "ucx-peers-in-vrf",
    "warning",
    what="A UCX that looks for RoCE peers in the main routing table alone",
    silently="where NICs are in VRFs, as on DOKS, peers look unreachable, and UCX takes what is left or nothing",
    fix="take UCX 1.19.1 or later, or set UCX_IB_ROCE_REACHABILITY_MODE=all",
    source="openucx#10922, #10848 (1.19.0 reads the main table; 1.19.1 reads all)",
)
def ucx_peers_in_vrf(view: View) -> Iterator[Found]:
    version = known(view, "ucx")
    if version is None or not Version("1.19") <= version < Version("1.19.1"):
        return
    for engine in view.moving():
        mode = engine.variable("UCX_IB_ROCE_REACHABILITY_MODE")
        if by_nixl(engine) and mode in (None, "route"):
            at = engine.environment.get("UCX_IB_ROCE_REACHABILITY_MODE") or engine.environment.get("UCX_TLS")
            yield at or whole(engine), f"UCX {version}"


@guard(
    "ucx-emulation-not-read",
    "error",
    what="UCX_PROTO_EMULATION_ENABLE on a UCX that does not have it",
    silently="nothing reads it: reads over TCP are emulated in software all the same",
    fix="take UCX 1.21 or later, and leave tcp out of UCX_TLS",
    source="openucx 1.21.0 (2026-06) has it first; its 1.19 and 1.20 do not",
)
def ucx_emulation_not_read(view: View) -> Iterator[Found]:
    version = ucx_version(view)
    for engine in view.moving():
        given = engine.environment.get("UCX_PROTO_EMULATION_ENABLE")
        if given is not None and version is not None and version < Version("1.21"):
            yield given, f"UCX {version}"


@guard(
    "ucx-emulation-on",
    "note",
    what="UCX may emulate in software what a transport cannot do",
    silently="a read over TCP is answered by the other side's CPU, at a hundredth of the rate, and nobody is told",
    fix="set UCX_PROTO_EMULATION_ENABLE=n: transfers then fail where they would crawl",
    source="vllm#52607 (100 times); run with UCX 1.22 over TCP: `software emulation` in UCX_PROTO_INFO",
)
def ucx_emulation_on(view: View) -> Iterator[Found]:
    for engine in view.moving():
        value = engine.variable("UCX_PROTO_EMULATION_ENABLE")
        if value is not None and value.strip().lower() in _ON and view.platform in ("rocm", "cuda") and by_nixl(engine):
            yield engine.environment["UCX_PROTO_EMULATION_ENABLE"], f"UCX_PROTO_EMULATION_ENABLE={value}"


@guard(
    "ucx-rendezvous-no-effect",
    "note",
    what="Settings of UCX's rendezvous protocol for engines that move KV with NIXL",
    silently="NIXL reads by ucp_get, which has no rendezvous: they change nothing about KV",
    fix="for several NICs of one rank set UCX_MAX_RMA_RAILS; leave UCX_RNDV_* and UCX_MAX_RNDV_RAILS out",
    source="openucx ucp_context.c (MAX_RNDV_RAILS: a rendezvous operation; MAX_RMA_RAILS, default 1: an RMA operation)",
)
def ucx_rendezvous_no_effect(view: View) -> Iterator[Found]:
    for engine in view.moving():
        for name, at in engine.environment.items() if by_nixl(engine) else ():
            if name.startswith("UCX_RNDV_") or name in ("UCX_MAX_RNDV_RAILS", "UCX_MAX_RNDV_LANES"):
                yield at, f"{name}={engine.variable(name) or ''}"


@guard(
    "ucx-one-rail",
    "note",
    what="An engine of one rank with several NICs, of which it uses one for each read",
    silently="KV moves at the rate of one NIC",
    fix="set UCX_MAX_RMA_RAILS to the number of NICs, or ask for one NIC a rank",
    source="openucx ucp_context.c MAX_RMA_RAILS (default 1)",
)
def ucx_one_rail(view: View) -> Iterator[Found]:
    for engine in view.moving():
        if engine.pod is None or engine.gpus != 1 or engine.pod.gpus != 1 or not by_nixl(engine):
            continue
        nics = [value for name, value in engine.pod.resources().items() if name.startswith("rdma/")]
        if "UCX_MAX_RMA_RAILS" not in engine.environment and len(nics) > 1:
            yield nics[0], f"{len(nics)} NICs, 1 rank"
