"""In which network pods are, and who reaches them there."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.sizes import GPUS_OF_A_NODE, alone_on_its_node
from serving.guards.view import Pod, RayClusterView, View

_NETWORKS = "k8s.v1.cni.cncf.io/networks"
_SERVE_PORT = 8000  # KubeRay 1.6, utils/constant.go DefaultServingPort; Ray Serve's own default is the same


@guard(
    "multus-with-host-network",
    "error",
    what="A pod in the node's network (`hostNetwork`) has network attachments of Multus",
    silently="Multus skips such pods: the annotation does nothing, and the pod sees the node's NICs as they are",
    fix="keep one: `hostNetwork: true` without the annotation, or the annotation without `hostNetwork`",
    source="multus-cni#1091",
)
def multus_with_host_network(view: View) -> Iterator[Found]:
    for pod in view.pods:
        named = pod.annotation(_NETWORKS)
        if pod.host_network and named is not None and named.value:
            yield named, f"{pod.name} has hostNetwork and attachments"


@guard(
    "host-network-dns",
    "warning",
    what="A pod with `hostNetwork` does not have `dnsPolicy: ClusterFirstWithHostNet`",
    silently="it asks the node's name server, which knows no service of the cluster: a Ray worker never finds its head",
    fix="add `dnsPolicy: ClusterFirstWithHostNet` beside `hostNetwork: true`",
    source="kubernetes 1.34 pkg/kubelet/network/dns/dns.go getPodDNSType; kuberay 1.6 pod.go (FQ_RAY_IP)",
)
def host_network_dns(view: View) -> Iterator[Found]:
    for pod in view.pods:
        policy = pod.node.at("dnsPolicy")
        if not pod.host_network or pod.kind == "other":
            continue
        if policy is None or policy.value in (None, "", "ClusterFirst"):
            at = pod.node.at("hostNetwork") if policy is None else policy
            yield at or pod.node, f"{pod.name}: {policy.value if policy else 'no dnsPolicy'}"


@guard(
    "half-node-on-host-network",
    "warning",
    what="Replicas in the node's network ask for at most half of its GPUs each",
    silently="two of them on a node want the same ports: the second stays Pending or dies, and half of the GPUs idle",
    fix="let one pod have all GPUs of a node, or leave `hostNetwork` and attach the NICs by Multus or SR-IOV",
    source="kubernetes 1.34 core/v1/defaults.go defaultHostNetworkPorts; skypilot#9644; vllm 0.18 envs.py (port 5600)",
)
def half_node_on_host_network(view: View) -> Iterator[Found]:
    for pod in view.pods:
        several = pod.replicas is not None and pod.replicas > 1
        if pod.kind not in ("worker", "engine") or not (pod.host_network and pod.gpus and several):
            continue
        if not alone_on_its_node(pod, view):
            whole = view.node.gpus or GPUS_OF_A_NODE
            yield pod.node.at("hostNetwork") or pod.node, f"{pod.replicas} x {pod.gpus} GPUs on nodes of {whole}"


def _in_pods(view: View) -> Iterator[tuple[RayClusterView, Located]]:
    """Serve configs of RayServices. A file with several has its configs in the order of its services."""
    services = [cluster for cluster in view.clusters if cluster.service is not None]
    if len(services) == len(view.serve):
        yield from zip(services, view.serve, strict=True)


@guard(
    "serve-on-localhost",
    "error",
    what="Ray Serve listens on 127.0.0.1 inside its pods",
    silently="KubeRay's probe asks from inside and finds all well, and no client ever reaches the service",
    fix="write `http_options: {host: 0.0.0.0}`",
    source="ray 2.55 serve/_private/proxy.py; kuberay 1.6 constant.go BaseWgetHealthCommand (asks localhost)",
)
def serve_on_localhost(view: View) -> Iterator[Found]:
    for _, config in _in_pods(view):
        host = config.at("http_options", "host")
        if host is not None and (host.value == "localhost" or str(host.value).startswith("127.")):
            yield host, f"host {host.value}"


def _port(pod: Pod | None) -> int | None:
    """The port that KubeRay takes for Serve's: the one named `serve`, else 8000."""
    listed = pod.container.at("ports") if pod else None
    for entry in listed.entries() if listed else ():
        name, port = entry.at("name"), entry.at("containerPort")
        if name is not None and name.value == "serve":
            return port.integer if port is not None else None
    return _SERVE_PORT


@guard(
    "serve-port-not-probed",
    "error",
    what="Ray Serve listens on another port than the one that KubeRay asks for its health",
    silently="Serve is up, and its workers never become ready: the service has no endpoint",
    fix="name that port `serve` in the containers' `ports`, or leave `http_options.port` at 8000",
    source="kuberay 1.6 pod.go initLivenessAndReadinessProbe (FindContainerPort, DefaultServingPort)",
)
def serve_port_not_probed(view: View) -> Iterator[Found]:
    for cluster, config in _in_pods(view):
        port = config.at("http_options", "port")
        asked = [_port(w) for w in cluster.workers if w.container.at("readinessProbe") is None]
        if port is None or port.integer is None:
            continue
        other = next((number for number in asked if number is not None and number != port.integer), None)
        if other is not None:
            yield port, f"Serve on {port.integer}, the workers' probe on {other}"


@guard(
    "open-ray-head",
    "warning",
    what="Ray's dashboard can be reached from outside the cluster, without a token",
    silently="whoever reaches it submits a job, and the job runs any code on the nodes with the GPUs",
    fix="add `authOptions: {mode: token}` to the cluster, or keep the head off the node's network and a load balancer",
    source="CVE-2023-48022; kuberay 1.6 raycluster_types.go AuthOptions, pod.go (dashboard-host is 0.0.0.0 by default)",
)
def open_ray_head(view: View) -> Iterator[Found]:
    for cluster in view.clusters:
        head, mode = cluster.head, cluster.spec.at("authOptions", "mode")
        if head is None or head.group is None or (mode is not None and mode.value == "token"):
            continue
        variable = head.environment.get("RAY_AUTH_MODE")
        token = variable.at("value") if variable else None
        host = head.group.at("rayStartParams", "dashboard-host")
        local = host is not None and (host.value == "localhost" or str(host.value).startswith("127."))
        shut = head.group.at("rayStartParams", "include-dashboard")
        if local or (shut is not None and str(shut.value).lower() == "false") or (token and token.value == "token"):
            continue
        for kind in (head.group.at("serviceType"), head.group.at("headService", "spec", "type")):
            if kind is not None and kind.value in ("LoadBalancer", "NodePort"):
                yield kind, f"the head's service is a {kind.value}"
        if head.host_network:
            yield host or head.node.at("hostNetwork") or head.node, "the head is in the node's network"
