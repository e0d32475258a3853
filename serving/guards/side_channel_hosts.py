"""Addresses at which engines tell each other where their KV is."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.transfer import by_nixl, has_callback, literal, may_be_hidden, most_replicas, whole
from serving.guards.view import Engine, View
from serving.guards.vllm_command import vllm_arguments

_HOST = "VLLM_NIXL_SIDE_CHANNEL_HOST"
_NOWHERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::")  # noqa: S104


@guard(
    "side-channel-host-localhost",
    "error",
    what="Prefill offers its KV at an address that is only its own",
    silently="decode in another pod connects to itself: every handshake fails, or each prompt is computed again",
    fix=f"set {_HOST} from the pod's address: valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}",
    source="vllm 0.18 envs.py:1274 and 0.29 :1655 (localhost); vllm#27083",
)
def side_channel_host_localhost(view: View) -> Iterator[Found]:
    for engine in view.moving():
        host = literal(engine, _HOST)
        if engine.role == "decode" or not by_nixl(engine) or (host is not None and host not in _NOWHERE):
            continue
        if engine.by_ray:  # which sets it, unless it is set
            if host is not None and engine.pod is not None and not has_callback(engine) and not _only_pod(view, engine):
                yield engine.environment[_HOST], f"{_HOST}={host}"
        elif host is not None and _alone(engine) and not _tied(engine):
            yield engine.environment[_HOST], f"{_HOST}={host}"
        elif _HOST not in engine.environment and _elsewhere(engine):
            yield whole(engine), f"{_HOST} is not set"


def _only_pod(view: View, engine: Engine) -> bool:
    """Whether a Ray cluster has one pod with GPUs: prefill and decode are both in it."""
    cluster = view.cluster_of(engine)
    pods = [pod for pod in (cluster.workers if cluster else ()) if pod.gpus]
    most = [pod.group.at("maxReplicas") if pod.group else None for pod in pods]
    return len(pods) == 1 and pods[0].replicas == 1 and all(one is None or one.integer == 1 for one in most)


def _elsewhere(engine: Engine) -> bool:
    """Whether decode is surely in another pod, and the address set nowhere that cannot be seen."""
    return _alone(engine) and not _tied(engine) and not may_be_hidden(engine, _HOST)


def _tied(engine: Engine) -> bool:
    """Whether a pod with the node's network is tied to one node: decode may be there too."""
    pod = engine.pod
    if pod is None or not pod.host_network:
        return False
    return pod.node.at("nodeName") is not None or pod.node.at("nodeSelector", "kubernetes.io/hostname") is not None


def _alone(engine: Engine) -> bool:
    """Whether no other vLLM runs in the pod: then decode is in another."""
    listed = engine.pod.node.at("containers") if engine.pod is not None else None
    return listed is not None and sum(vllm_arguments(container) is not None for container in listed.entries()) == 1


@guard(
    "side-channel-host-fixed",
    "warning",
    what=f"One address written into {_HOST} for several replicas",
    silently="every replica offers its KV at the same address: decode reads from the wrong one, or from none",
    fix="leave it to Ray, or take the pod's address: valueFrom: {fieldRef: {fieldPath: status.podIP}}",
    source="ray 2.55 and 2.60 kv_transfer/nixl.py _set_side_channel_host; vllm 0.18 nixl_connector.py request_finished",
)
def side_channel_host_fixed(view: View) -> Iterator[Found]:
    for engine in view.moving():
        host = literal(engine, _HOST)
        if host and by_nixl(engine) and host not in _NOWHERE and most_replicas(engine) > 1 and not has_callback(engine):
            yield engine.environment[_HOST], f"{_HOST}={host} for {most_replicas(engine)} replicas"
