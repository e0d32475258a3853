"""KubeRay's operator, from its chart: it turns a RayService into pods."""

from typing import Any

import pulumi

from infra.one_line import end_when_told
from infra.operator_chart import local_chart
from serving.kubernetes_names import FIELD_MANAGER, OPERATOR, labels
from serving.kubernetes_settings import OCI, RayOperator
from serving.versions import versions

RELEASE = "kuberay-operator"
_CRD = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
_FIELD_MANAGER_ANNOTATION = "pulumi.com/patchFieldManager"  # pulumi-kubernetes, pkg/metadata/annotations.go


def ray_operator(
    settings: RayOperator,
    owner: str,
    opts: pulumi.ResourceOptions,
    *,
    namespace: str = "",
    node_selector: dict[str, str] | None = None,
) -> list[pulumi.Resource]:
    """Register the operator in `settings.namespace`, or nothing when it is `preinstalled`.

    Its chart was looked at before anything was registered (infra/operator_chart.py).

    owner: the stack that makes it. namespace: the one that the operator looks after, in `opts.depends_on`; empty: all
    of the cluster, for a stack that owns the nodes of others. node_selector: the cluster's CPU nodes.
    """
    if settings.install == "preinstalled":
        return []
    from pulumi_kubernetes.helm.v4 import Chart, RepositoryOptsArgs

    made: list[pulumi.Resource] = []
    if settings.namespace != namespace:
        made.append(_own_namespace(settings.namespace, owner, opts))
    path, in_registry = local_chart(settings.chart), settings.chart.startswith(OCI)
    public = versions()["kuberay"]
    chart = Chart(
        RELEASE,
        chart=path or settings.chart or public["chart"],
        version=None if path else settings.version,
        repository_opts=None if path or in_registry else RepositoryOptsArgs(repo=public["chart_repository"]),
        namespace=settings.namespace,
        values=chart_values(settings, namespace, node_selector or {}),
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=made, transforms=[_keep_definition])),
    )
    # What the provider cannot read or fetch, though something is there.
    end_when_told(chart)
    return [*made, chart]


def chart_values(settings: RayOperator, namespace: str, node_selector: dict[str, str]) -> dict[str, Any]:
    """What differs from the chart's own values (ray-project/kuberay, helm-chart/kuberay-operator/values.yaml).

    Left as they are: leader election, which keeps an operator on a node that was lost from working beside its
    replacement; 100m of CPU and 512Mi, which the chart rates for 500 Ray pods; a container without root, capabilities
    or a writable file system; no tolerations, so that it stays off GPU nodes.
    """
    limited = {
        # Roles in the watched namespace in place of a ClusterRole, which could read every secret of the cluster, start
        # pods anywhere and make role bindings.
        "singleNamespaceInstall": True,
        "watchNamespace": [namespace],
    }
    return {
        "nodeSelector": node_selector,
        # Said again because the chart of a checkout, unlike a released one, names the nightly image.
        "image": {"tag": f"v{settings.version}"},
        **(limited if namespace else {}),
    }


def _own_namespace(name: str, owner: str, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """The labels say whose it is, and Kubernetes refuses a second stack that would change them.

    It goes with the stack. One without these labels the pre-flight refuses (infra/provider/preflight/names.py), because
    Pulumi's server-side apply would take it over.
    """
    from pulumi_kubernetes.core.v1 import Namespace

    return Namespace(name, metadata={"name": name, "labels": labels(owner, OPERATOR)}, opts=opts)


def _keep_definition(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """Leave KubeRay's CustomResourceDefinitions behind, as Helm does: with them goes every Ray cluster there is.

    The next deployment finds them and may change them, since all of ours apply under one field manager. Definitions
    that somebody else applied and that differ end it with a conflict, in place of changing KubeRay under their feet.
    """
    if args.type_ != _CRD:
        return None
    metadata: Any = args.props["metadata"]
    annotations = {**metadata.get("annotations", {}), _FIELD_MANAGER_ANNOTATION: FIELD_MANAGER}
    return pulumi.ResourceTransformResult(
        props={**args.props, "metadata": {**metadata, "annotations": annotations}},
        opts=pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(retain_on_delete=True)),
    )
