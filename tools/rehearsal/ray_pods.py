"""Which Ray pod has an address, as the API server knows it: whose head, which token, how many GPUs have joined."""

import base64
from dataclasses import dataclass
from typing import Any

from kubernetes import client

CLUSTER_LABEL = "ray.io/cluster"
TYPE_LABEL = "ray.io/node-type"
_TOKEN_VARIABLE = "RAY_AUTH_TOKEN"  # noqa: S105 - the name of a variable


@dataclass(frozen=True)
class RayPod:
    """`token` is what a request must bring, or None where Ray runs without token authentication."""

    uid: str
    namespace: str
    cluster: str
    is_head: bool
    token: str | None


class RayPods:
    """Asks the API server each time: pods come and go, and addresses are used again."""

    def __init__(self, api: client.ApiClient) -> None:
        self._core: Any = client.CoreV1Api(api)
        self._custom: Any = client.CustomObjectsApi(api)

    def at(self, address: str) -> RayPod | None:
        """The running Ray pod with this address; of several on one node (hostNetwork) the first."""
        found = self._core.list_pod_for_all_namespaces(
            label_selector=CLUSTER_LABEL, field_selector=f"status.podIP={address},status.phase=Running"
        ).items
        if not found:
            return None
        pod = sorted(found, key=lambda pod: (pod.metadata.labels.get(TYPE_LABEL) != "head", pod.metadata.name))[0]
        return RayPod(
            uid=pod.metadata.uid,
            namespace=pod.metadata.namespace,
            cluster=pod.metadata.labels[CLUSTER_LABEL],
            is_head=pod.metadata.labels.get(TYPE_LABEL) == "head",
            token=self._token(pod),
        )

    def addresses(self, head: RayPod) -> list[str]:
        """Addresses of all running pods of that Ray cluster."""
        return sorted({pod.status.pod_ip for pod in self._pods(head)})

    def ready_gpus(self, head: RayPod) -> int:
        """GPUs of the Ready worker pods: what Ray would have to place replicas on."""
        return sum(_gpus(pod) for pod in self._pods(head) if _ready(pod))

    def ray_version(self, head: RayPod) -> str:
        """`spec.rayVersion` of the RayCluster: a simulated pod is always what was asked for."""
        cluster: Any = self._custom.get_namespaced_custom_object(
            "ray.io", "v1", head.namespace, "rayclusters", head.cluster
        )
        return cluster["spec"].get("rayVersion", "unknown")

    def _pods(self, head: RayPod) -> list[Any]:
        return self._core.list_namespaced_pod(
            head.namespace, label_selector=f"{CLUSTER_LABEL}={head.cluster}", field_selector="status.phase=Running"
        ).items

    def _token(self, pod: Any) -> str | None:
        """What the container's variable would hold; KubeRay points it at the cluster's secret."""
        for variable in pod.spec.containers[0].env or []:
            if variable.name != _TOKEN_VARIABLE:
                continue
            if variable.value_from is None or variable.value_from.secret_key_ref is None:
                return variable.value
            reference = variable.value_from.secret_key_ref
            secret = self._core.read_namespaced_secret(reference.name, pod.metadata.namespace)
            return base64.b64decode(secret.data[reference.key]).decode()
        return None


def _gpus(pod: Any) -> int:
    limits = [container.resources.limits or {} for container in pod.spec.containers if container.resources]
    return sum(int(amount) for limit in limits for key, amount in limit.items() if key.endswith("gpu"))


def _ready(pod: Any) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions or [])
