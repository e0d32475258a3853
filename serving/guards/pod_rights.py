"""What pods may do on their nodes, which devices they get, and which secrets stand in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.sizes import alone_on_its_node, privileged, runs_as_root, sends_kv
from serving.guards.view import Pod, View
from serving.ucx_transports import RDMA, TCP, allowed

_RDMA = re.compile(r"rdma|roce|infiniband", re.IGNORECASE)
# Groups below are the system's own (Debian policy 9.2.2): the render group is among them, with a number that the node's
# image gave it. 44 is `video` on every Debian.
_FIRST_GROUP_OF_USERS = 1000
_FIXED_GROUPS = (0, 44)
_TOKENS = re.compile(r"^(HF_TOKEN|HUGGING_?FACE_(HUB_)?TOKEN|AWS_SECRET_ACCESS_KEY|NGC_API_KEY|VLLM_API_KEY)$")


def _rdma(pod: Pod) -> tuple[str, Located] | None:
    """The first resource of a pod that is an RDMA device, and is asked for."""
    return next(((name, v) for name, v in pod.resources().items() if _RDMA.search(name) and v.integer), None)


def _ipc_lock(pod: Pod) -> Located | None:
    added = pod.container.at("securityContext", "capabilities", "add")
    names = ("IPC_LOCK", "CAP_IPC_LOCK", "ALL")
    return next((c for c in (added.entries() if added else ()) if str(c.value).upper() in names), None)


@guard(
    "rdma-without-ipc-lock",
    "warning",
    what="A pod asks for RDMA devices and may not pin memory",
    silently="where the container runtime limits locked memory, UCX registers none, and goes over TCP or nowhere",
    fix="add `securityContext: {capabilities: {add: [IPC_LOCK]}}` to the container",
    source="llm-d AMD overlays; oci-hpc-oke manifests; k8s-rdma-shared-dev-plugin README (IPC_LOCK in its examples)",
)
def rdma_without_ipc_lock(view: View) -> Iterator[Found]:
    for pod in view.pods:
        device = _rdma(pod)
        if device and pod.kind in ("worker", "engine") and not (_ipc_lock(pod) or privileged(pod)):
            yield device[1], f"{device[0]} without IPC_LOCK"


@guard(
    "ipc-lock-of-a-user",
    "warning",
    what="IPC_LOCK is added to a container whose process is not root's",
    silently="Kubernetes gives added capabilities to root's processes only: memory is pinned as if it were not there",
    fix="add `runAsUser: 0` to the container's securityContext",
    source="kubernetes#56374 (no ambient capabilities); rayproject/ray images run as user `ray`",
)
def ipc_lock_of_a_user(view: View) -> Iterator[Found]:
    for pod in view.pods:
        added = _ipc_lock(pod)
        if added is not None and _rdma(pod) and not privileged(pod) and runs_as_root(pod) is False:
            yield added, "the container's user is not 0"


@guard(
    "engine-without-rdma-device",
    "warning",
    what="Engines move KV between pods with GPUs, and their pods ask for no RDMA device",
    silently="no /dev/infiniband comes into the container: what moves KV takes TCP where it may, else no request is "
    "answered",
    fix="add the RDMA resources of the nodes to the limits: `rdma/fabric0: 1` and so on, `rdma/ib: 1`",
    source="k8s-rdma-shared-dev-plugin; llm-d AMD overlays; vllm#52607",
)
def engine_without_rdma_device(view: View) -> Iterator[Found]:
    seen: set[int] = set()
    for engine in view.moving():
        pod, named = engine.pod, engine.variable("UCX_TLS")
        if pod is None or id(pod) in seen or not pod.gpus or privileged(pod) or not sends_kv(engine):
            continue
        seen.add(id(pod))
        if engine.by_ray and pod.replicas == 1:  # prefill and decode on one node: KV stays on it
            continue
        # Any other device (EFA, a vendor's virtual function), network or claim may be the NIC under another name.
        others = [n for n in pod.resources() if "/" in n and not n.endswith("gpu")]
        attached = pod.annotation("k8s.v1.cni.cncf.io/networks") or pod.node.at("resourceClaims")
        # With TCP it is said so on purpose, and blamed elsewhere; without RDMA both are meant to be on one node.
        elsewhere = named is not None and (allowed(named) & TCP or not allowed(named) & RDMA)
        within = engine.kv_extra("backend")  # MoRIIO's, vllm 0.29: xgmi stays within a node
        elsewhere = elsewhere or (within is not None and within.value == "xgmi")
        if not (others or attached or elsewhere or _host_device(pod)):
            asked = next(v for n, v in pod.resources().items() if n.endswith("gpu"))
            yield asked, f"{pod.name}: {pod.gpus} GPUs and no RDMA device"


def _host_device(pod: Pod) -> bool:
    """Whether /dev, or what is below it, is mounted from the node."""
    volumes = pod.node.at("volumes")
    paths = [v.at("hostPath", "path") for v in (volumes.entries() if volumes else ())]
    return any(path is not None and re.match(r"/dev(/infiniband)?/?$", str(path.value)) for path in paths)


@guard(
    "shared-rdma-device",
    "note",
    what="Pods of which several fit on a node each ask for one RDMA device of the shared plugin",
    silently="the plugin hands the same NICs to all of them: they share the bandwidth, and it keeps none away",
    fix="give one pod the whole node (all of its GPUs), or use SR-IOV, which gives each pod its own function",
    source="k8s-rdma-shared-dev-plugin (rdmaHcaMax)",
)
def shared_rdma_device(view: View) -> Iterator[Found]:
    for pod in view.pods:
        device = _rdma(pod)
        several = pod.replicas is not None and pod.replicas > 1
        if device and device[0].startswith("rdma/") and pod.gpus and several and not alone_on_its_node(pod, view):
            yield device[1], f"{pod.replicas} pods of {pod.gpus} GPUs"


@guard(
    "privileged-engine",
    "note",
    what="An engine's container is privileged",
    silently="it sees every device of the node, GPUs and NICs of other pods too, and can change the node itself",
    fix="use the device plugins' resources and `capabilities: {add: [IPC_LOCK, SYS_PTRACE]}`, if that is enough there",
    source="kubernetes docs, Pod Security Standards; the reference post's own manifest",
)
def privileged_engine(view: View) -> Iterator[Found]:
    for pod in view.pods:
        said = privileged(pod)
        if said is not None and pod.kind in ("worker", "engine"):
            yield said, f"{pod.name} is privileged"


@guard(
    "render-group-by-hand",
    "note",
    what="The group of /dev/dri/renderD* stands as a number in the manifest",
    silently="another image of the node has another number: the container sees no GPU, and the engine says only that",
    fix="ask the nodes (`stat -c %g /dev/dri/renderD128`), or run the container as root",
    source="k8s-device-plugin#39, #65, #93",
)
def render_group_by_hand(view: View) -> Iterator[Found]:
    for pod in view.pods:
        groups = pod.node.at("securityContext", "supplementalGroups")
        if not any(n == "amd.com/gpu" for n in pod.resources()) or runs_as_root(pod) or privileged(pod):
            continue
        for group in groups.entries() if groups else ():
            number = group.integer
            if number is not None and 0 <= number < _FIRST_GROUP_OF_USERS and number not in _FIXED_GROUPS:
                yield group, f"group {number}"


@guard(
    "token-in-plain-text",
    "warning",
    what="A token stands in the configuration itself",
    silently="whoever may read the object, its history or Ray's dashboard has it",
    fix="put it into a Secret and name that: `valueFrom: {secretKeyRef: {name: hf-token, key: token}}`",
    source="kubernetes docs, Secrets; ray 2.55 dashboard (shows runtime_env)",
)
def token_in_plain_text(view: View) -> Iterator[Found]:
    variables = [pod.environment for pod in view.pods] + [engine.environment for engine in view.engines]
    for environment in variables:
        for name, entry in environment.items():
            value = entry.at("value") if isinstance(entry.value, dict) else entry
            text = value.text if value is not None else None
            # `$(HF_TOKEN)`, `${HF_TOKEN}`, `<your token>`: something else puts the token there.
            if value is not None and text and _TOKENS.match(name) and text[0] not in "$<{":
                yield value, f"{name} has a value"
