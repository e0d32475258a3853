"""The Kubernetes Jobs of the RDMA gate: pods of an engine's shape that run the driver (run.py) and nothing else."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from serving.kubernetes_names import RDMA_GATE, labels
from serving.pods import engine_pod
from serving.rdma_gate.floor import MemoryKind
from serving.rdma_gate.gate_run import SideName
from serving.rdma_gate.pairs import Pair
from serving.rdma_gate.run import deadline_seconds
from serving.stack import Stack
from serving.weights import weights_volume

Manifest = dict[str, Any]
# A finished Job that nobody took away, because whoever waited for it was killed.
TTL_SECONDS = 600


def gate_pod(stack: Stack, stack_name: str) -> Manifest:
    """Template of a gate pod: an engine's devices, groups, rights, network, mounts and variables, without its model.

    It is taken from the engine's own, so that what the gate shows holds for engines. CPUs and memory too: a node that
    has no room for it has none for the engine.
    """
    pod = deepcopy(engine_pod(stack, stack_name))
    pod["metadata"]["labels"] = labels(stack_name, RDMA_GATE)
    spec, weights = pod["spec"], weights_volume(stack)
    of_weights = {volume["name"] for volume in weights.volumes}
    variables = {variable["name"] for variable in weights.env}
    spec["restartPolicy"] = "Never"
    spec["terminationGracePeriodSeconds"] = 5
    spec["volumes"] = [volume for volume in spec["volumes"] if volume["name"] not in of_weights]
    container = spec["containers"][0]
    container["name"] = RDMA_GATE
    container["env"] = [variable for variable in container["env"] if variable["name"] not in variables]
    container["volumeMounts"] = [mount for mount in container["volumeMounts"] if mount["name"] not in of_weights]
    for serving_only in ("readinessProbe", "ports"):
        del container[serving_only]
    return pod


def job_name(pair: int, side: SideName) -> str:
    """pair: its number."""
    return f"{RDMA_GATE}-{pair}-{side}"


def gate_job(
    template: Manifest, pair: Pair, side: SideName, devices: Sequence[str], memory: MemoryKind, peer: str = ""
) -> Manifest:
    """One side of a pair, on its node. template: gate_pod(). peer: the server's address, for the client."""
    pod = deepcopy(template)
    command = ["python", "-m", "serving.rdma_gate.run", side, "--devices", ",".join(devices), "--memory", memory]
    pod["spec"]["containers"][0]["command"] = [*command, "--peer", peer] if peer else command
    field = {"key": "metadata.name", "operator": "In", "values": [pair.client if side == "client" else pair.server]}
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    pod["spec"]["affinity"] = {**pod["spec"].get("affinity", {}), "nodeAffinity": node}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(pair.number, side), "labels": pod["metadata"]["labels"]},
        "spec": {
            "backoffLimit": 0,  # a second try would hide what the first one saw
            "activeDeadlineSeconds": deadline_seconds(len(devices)),
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "template": pod,
        },
    }
