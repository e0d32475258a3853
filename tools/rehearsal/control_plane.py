"""The command lines of the control plane. Nothing here starts anything."""

from pathlib import Path

from tools.rehearsal.credentials import API_PORT, Credentials
from tools.rehearsal.namespace import NODE_ADDRESS, POD_RANGE, SERVICE_RANGE
from tools.toolchain.items import path

_ETCD = "http://127.0.0.1:2379"
KUBELET_PORT = 10250
KWOK_SERVER = "127.0.0.1:10247"  # behind kubelet.py, which answers on KUBELET_PORT of every node


def etcd(data: Path) -> list[str]:
    """Its data is thrown away with the cluster, so it never waits for the disk."""
    return [
        str(path("etcd")),
        f"--data-dir={data}",
        f"--listen-client-urls={_ETCD}",
        f"--advertise-client-urls={_ETCD}",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(made: Credentials, certificates: Path) -> list[str]:
    """Default admission, RBAC, tokens from a file and service account tokens. `certificates`: where it may write."""
    return [
        str(path("kube-apiserver")),
        f"--etcd-servers={_ETCD}",
        "--bind-address=0.0.0.0",
        f"--advertise-address={NODE_ADDRESS}",
        f"--secure-port={API_PORT}",
        f"--tls-cert-file={made.certificate}",
        f"--tls-private-key-file={made.key}",
        f"--cert-dir={certificates}",
        f"--token-auth-file={made.tokens}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={made.service_account_key}",
        f"--service-account-signing-key-file={made.service_account_key}",
        "--kubelet-preferred-address-types=InternalIP",
        "--profiling=false",
    ]


def controller_manager(made: Credentials, kubeconfig: Path) -> list[str]:
    """All controllers that run by default: garbage collector, namespaces, jobs, endpoint slices, volumes, tokens."""
    return [
        str(path("kube-controller-manager")),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={made.service_account_key}",
        f"--root-ca-file={made.ca}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        f"--cert-dir={made.directory}",
        "--profiling=false",
    ]


def scheduler(made: Credentials, kubeconfig: Path) -> list[str]:
    return [
        str(path("kube-scheduler")),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        f"--cert-dir={made.directory}",
        "--profiling=false",
    ]


def kwok(kubeconfig: Path, config: Path) -> list[str]:
    """Nodes with the annotation of nodes.py are kept Ready, pods bound to them go through the stages of `config`."""
    return [
        str(path("kwok")),
        f"--kubeconfig={kubeconfig}",
        f"--config={config}",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        f"--cidr={POD_RANGE.replace('.0.0/', '.0.1/')}",
        f"--node-ip={NODE_ADDRESS}",
        f"--node-port={KUBELET_PORT}",
        f"--server-address={KWOK_SERVER}",
        "--node-lease-duration-seconds=40",  # a kubelet's default (KubeletConfiguration, nodeLeaseDurationSeconds)
    ]


def ray_operator() -> list[str]:
    """KubeRay outside of a cluster reaches head pods through the API server's proxy, its kubeconfig by environment."""
    return [
        str(path("ray-operator")),
        "--enable-leader-election=false",
        "--metrics-addr=:0",
        "--health-probe-bind-address=:0",
        "--use-kubernetes-proxy",
    ]
