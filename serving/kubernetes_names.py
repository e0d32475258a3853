"""Names and labels of what a stack makes in its namespace. They are fixed: people and `make benchmark` rely on them."""

from serving.kubernetes_grammar import DNS_LABEL

RAY_SERVICE = "llm"
SERVE_SERVICE = f"{RAY_SERVICE}-serve-svc"  # KubeRay's own name for the service of Serve's proxies
SERVE_PORT = 8000
METRICS_SERVICE = "llm-metrics"  # headless: one address a Ray node
METRICS_PORT = 8080  # KubeRay's default `metrics-export-port`
BENCHMARK = "benchmark"  # the suspended CronJob, and the container in it
BENCHMARK_TARGET = "benchmark-target"
RESULTS = "results"
WEIGHTS = "weights"
OPERATOR = "ray-operator"  # the component of the namespace that only KubeRay's operator is in
FABRIC_INSPECTOR = "fabric-inspector"  # the DaemonSet, and its component
RDMA_GATE = "rdma-gate"  # its component; the names of its Jobs begin with it
HUGGING_FACE_TOKEN = "hugging-face-token"  # noqa: S105  the name of a secret, not one
FIELD_MANAGER = "pd-mi325x"
POD_SECURITY = "pod-security.kubernetes.io/enforce"  # label of a namespace
# Of the benchmark's pod: its target, its results, its home, and what is gone with it.
BENCHMARK_FOLDERS = ("/etc/pd-mi325x", "/results", "/home/benchmark", "/tmp")  # noqa: S108
NAMESPACE = f"(?:{DNS_LABEL})?"  # of a setting that may be empty: the default


def dashboard_name(dashboard: str) -> str:
    """The ConfigMap of one of serving.dashboards."""
    return f"dashboard-{dashboard}"


def is_the_clusters_own(namespace: str) -> bool:
    """Whether a namespace is one that Kubernetes itself keeps, so that no stack may make it, or delete it."""
    return namespace == "default" or namespace.startswith("kube-")


def labels(stack: str, component: str) -> dict[str, str]:
    """Kubernetes' recommended labels.

    `component`: engine, head, service, metrics, benchmark, results, weights, fabric, fabric-inspector, rdma-gate,
    namespace or ray-operator.
    """
    return {
        "app.kubernetes.io/name": "pd-mi325x",
        "app.kubernetes.io/instance": stack,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/managed-by": "pulumi",
    }
