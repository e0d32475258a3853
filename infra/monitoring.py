"""What watches a stack: a PodMonitor for the Prometheus operator, and Grafana's dashboards."""

import pulumi

from serving.dashboards import dashboards
from serving.kubernetes_names import RAY_SERVICE, dashboard_name, labels
from serving.stack import Stack

_PORT = "metrics"  # Ray's exporter, by its name in the pods (serving/pods.py)
_INTERVAL = "10s"  # Ray exports every 10 s (`metrics_report_interval_ms`); more often would see the same numbers


def monitoring(stack: Stack, stack_name: str, namespace: str, opts: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """Register it for `prometheus-operator`. `annotations` stand on the pods themselves, `none` is none.

    No ServiceMonitor: it would scrape the same pods a second time, through the headless service.
    """
    if stack.monitoring != "prometheus-operator":
        return []
    shown = [_dashboard(name, text, stack_name, namespace, opts) for name, text in dashboards().items()]
    return [*shown, _pod_monitor(stack_name, namespace, opts)]


def _pod_monitor(stack_name: str, namespace: str, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    from pulumi_kubernetes.apiextensions import CustomResource

    # KubeRay keeps a pod's own labels and adds `is-ray-node`, which the stack's benchmark and Jobs do not have.
    selected = {"app.kubernetes.io/instance": stack_name, "ray.io/is-ray-node": "yes"}
    return CustomResource(
        "pod-monitor",
        api_version="monitoring.coreos.com/v1",
        kind="PodMonitor",
        metadata={"name": RAY_SERVICE, "namespace": namespace, "labels": labels(stack_name, "metrics")},
        spec={
            "selector": {"matchLabels": selected},
            "podMetricsEndpoints": [{"port": _PORT, "interval": _INTERVAL}],
        },
        opts=opts,
    )


def _dashboard(name: str, text: str, stack_name: str, namespace: str, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """Found by Grafana's sidecar through its label (grafana/helm-charts: `sidecar.dashboards.label`)."""
    from pulumi_kubernetes.core.v1 import ConfigMap

    return ConfigMap(
        dashboard_name(name),
        metadata={
            "name": dashboard_name(name),
            "namespace": namespace,
            "labels": {**labels(stack_name, "metrics"), "grafana_dashboard": "1"},
        },
        data={f"{name}.json": text},
        opts=opts,
    )
