"""Pod templates of a Ray cluster on Kubernetes: the head, and one engine replica that fills a node."""

from typing import Any

from serving.kubernetes_names import METRICS_PORT, SERVE_PORT, labels
from serving.node_profiles import NodeProfile
from serving.stack import Stack
from serving.weights import weights_volume

Manifest = dict[str, Any]
ENGINE, HEAD = "engine", "head"
# The variable of an engine container with the pod's address: the node's own where the pod is in the node's network.
ADDRESS_VARIABLE = "POD_IP"
# Bytes. No replica runs on the head, so hardly an object does, and Ray wants 75 MiB (ray_constants.py, 2.55) at least;
# as much as local rehearsals run with. /dev/shm and the memory limit must hold it.
HEAD_OBJECT_STORE = 256 * 1024**2
_HEAD_SHARED_MEMORY = "1Gi"
# Serve ends a replica within its graceful shutdown (20 s); RDMA memory is deregistered after that.
_GRACE_SECONDS = 120
# A worker is ready when its Serve proxy answers. KubeRay's own probe of it runs `wget` in the image, and a single late
# answer takes the pod out of the service; this one does after half a minute without an answer.
_SERVES: Manifest = {
    "httpGet": {"path": "/-/healthz", "port": SERVE_PORT},
    "timeoutSeconds": 5,
    "periodSeconds": 10,
    "failureThreshold": 3,
}


def engine_pod(stack: Stack, stack_name: str) -> Manifest:
    """Template of an engine pod: all GPUs and RDMA devices of a node, and nobody else's engine on that node."""
    profile, platform = stack.profile, stack.platform_
    weights = weights_volume(stack)
    spec = _pod_spec(stack, platform.shared_memory)
    spec |= _network(profile) | {"tolerations": [t.model_dump(exclude_none=True) for t in profile.tolerations]}
    if profile.node_selector:
        spec["nodeSelector"] = dict(profile.node_selector)
    if profile.gpus_per_node:
        spec["affinity"] = {"podAntiAffinity": _alone()}
    if stack.supplemental_groups:
        spec["securityContext"]["supplementalGroups"] = list(stack.supplemental_groups)
    container = _ray_container(stack, "ray-worker", profile.engine_cpu, profile.engine_memory)
    # A node's shared RDMA plugin hands a NIC to many pods: the GPUs are what keeps a second engine away.
    devices = ({profile.gpu_resource: profile.gpus_per_node} if profile.gpu_resource else {}) | profile.rdma_resources
    for kind in ("requests", "limits"):
        container["resources"][kind] |= {name: str(count) for name, count in devices.items()}
    container["securityContext"] = _engine_security(stack)
    container["env"] += [
        _pod_address(ADDRESS_VARIABLE),
        # vLLM's default is localhost: the other side would look for the KV cache on its own node.
        _pod_address("VLLM_NIXL_SIDE_CHANNEL_HOST"),
        # Replicas get the same from Ray (serve_config.py). Here for what runs beside them, `kubectl exec` included.
        *({"name": name, "value": value} for name, value in stack.environment.items()),
        *weights.env,
    ]
    container["ports"] += [{"name": "serve", "containerPort": SERVE_PORT}]
    container["readinessProbe"] = _SERVES
    host = [(path.strip("/").replace("/", "-"), path) for path in platform.host_paths]
    container["volumeMounts"] += [{"name": n, "mountPath": path, "readOnly": True} for n, path in host]
    container["volumeMounts"] += weights.mounts
    spec["volumes"] += [{"name": n, "hostPath": {"path": path, "type": "Directory"}} for n, path in host]
    spec["volumes"] += weights.volumes
    spec["containers"] = [container]
    return {"metadata": _metadata(stack, stack_name, ENGINE, _attachments(profile)), "spec": spec}


def head_pod(stack: Stack, stack_name: str) -> Manifest:
    """Template of the head: Ray's control services and Serve's controller on a CPU node, no replica."""
    profile = stack.profile
    spec = _pod_spec(stack, _HEAD_SHARED_MEMORY)
    if profile.system_node_selector:
        spec["nodeSelector"] = dict(profile.system_node_selector)
    container = _ray_container(stack, "ray-head", profile.head_cpu, profile.head_memory)
    container["ports"] += [
        {"name": "gcs-server", "containerPort": 6379},
        {"name": "dashboard", "containerPort": 8265},
        {"name": "client", "containerPort": 10001},
        {"name": "serve", "containerPort": SERVE_PORT},
    ]
    spec["containers"] = [container]
    return {"metadata": _metadata(stack, stack_name, HEAD, {}), "spec": spec}


def pod_security(stack: Stack) -> str:
    """The Pod Security level that the stack's namespace has to allow.

    Host network, host paths and IPC_LOCK need `privileged`; plain CPU pods need none of them.
    """
    platform = stack.platform_
    plain = stack.profile.network == "pod" and not (platform.host_paths or platform.capabilities)
    return "baseline" if plain and stack.weights.mode != "local" else "privileged"


def _pod_spec(stack: Stack, shared_memory: str) -> Manifest:
    """What head and engine have in common."""
    return {
        "automountServiceAccountToken": False,  # Ray without the autoscaler never speaks to the API server
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": shared_memory}},
            {"name": "ray", "emptyDir": {}},
        ],
        **stack.required_images.pull_secrets,
    }


def _ray_container(stack: Stack, name: str, cpu: str, memory: str) -> Manifest:
    """A container with Ray in it. Requests equal limits: nothing else decides how fast a benchmark is.

    No liveness probe here: KubeRay adds one. From Ray 2.53 on it asks Ray's agent over HTTP, and kills after ten
    minutes without an answer (pod.go initLivenessAndReadinessProbe, 1.6); loading weights does not keep the agent from
    answering.
    """
    resources = {"cpu": cpu, "memory": memory}
    return {
        "name": name,
        "image": stack.required_images.engine,
        "resources": {"requests": dict(resources), "limits": dict(resources)},
        "securityContext": {"allowPrivilegeEscalation": False},
        "env": [{"name": "RAY_USAGE_STATS_ENABLED", "value": "0"}, {"name": "VLLM_NO_USAGE_STATS", "value": "1"}],
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT}],
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "ray", "mountPath": "/tmp/ray"}],  # noqa: S108
    }


def _engine_security(stack: Stack) -> Manifest:
    """What the container may do; the device plugins hand over /dev/kfd, /dev/dri and /dev/infiniband."""
    if stack.security.privileged:
        return {"privileged": True, "runAsUser": 0}
    if not stack.platform_.capabilities:
        return {"allowPrivilegeEscalation": False}
    # As root: Kubernetes sets no ambient capabilities, so that a process of another user has none of them.
    added = {"add": list(stack.platform_.capabilities)}
    return {"allowPrivilegeEscalation": False, "runAsUser": 0, "capabilities": added}


def _pod_address(variable: str) -> Manifest:
    return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def _network(profile: NodeProfile) -> Manifest:
    """The pod's network: the node's own, where its RDMA devices, their addresses and routes are, or the cluster's."""
    if profile.network != "host":
        return {}
    return {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}  # the default would not resolve services


def _attachments(profile: NodeProfile) -> dict[str, str]:
    """The annotation by which Multus moves devices into a pod; each under its own name inside."""
    if profile.network == "multus":
        named = [f"{name}@{device}" for name, device in profile.host_devices.items()]
        return {"k8s.v1.cni.cncf.io/networks": ",".join(named + profile.attachments)}
    return {"k8s.v1.cni.cncf.io/networks": ",".join(profile.attachments)} if profile.network == "sriov" else {}


def _alone() -> Manifest:
    """No two engine pods of any stack on one node: with hostNetwork they would meet on their ports."""
    engines = {"app.kubernetes.io/name": "pd-mi325x", "app.kubernetes.io/component": ENGINE}
    rule = {
        "labelSelector": {"matchLabels": engines},
        "namespaceSelector": {},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}


def _metadata(stack: Stack, stack_name: str, component: str, annotations: dict[str, str]) -> Manifest:
    if stack.monitoring == "annotations":
        annotations = {
            **annotations,
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(METRICS_PORT),
            "prometheus.io/path": "/metrics",
        }
    return {"labels": labels(stack_name, component), **({"annotations": annotations} if annotations else {})}
