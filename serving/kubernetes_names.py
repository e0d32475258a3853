"""Names and labels of what a stack makes in its namespace. They are fixed: people and `make benchmark` rely on them."""

RAY_SERVICE = "llm"
SERVE_SERVICE = f"{RAY_SERVICE}-serve-svc"  # KubeRay's own name for the service of Serve's proxies
SERVE_PORT = 8000
METRICS_SERVICE = "llm-metrics"  # headless: one address a Ray node
METRICS_PORT = 8080  # KubeRay's default `metrics-export-port`
BENCHMARK = "benchmark"  # the suspended CronJob, and the container in it
BENCHMARK_TARGET = "benchmark-target"
RESULTS = "results"
WEIGHTS = "weights"
HUGGING_FACE_TOKEN = "hugging-face-token"  # noqa: S105  the name of a secret, not one
FIELD_MANAGER = "pd-mi325x"


def labels(stack: str, component: str) -> dict[str, str]:
    """Kubernetes' recommended labels. `component`: engine, head, benchmark, weights, metrics, fabric or results."""
    return {
        "app.kubernetes.io/name": "pd-mi325x",
        "app.kubernetes.io/instance": stack,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/managed-by": "pulumi",
    }
