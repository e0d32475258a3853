"""KubeRay's operator, from its chart: it turns a RayService into pods."""

from pathlib import Path
from typing import Any

import pulumi
import requests

from serving.errors import ConfigError
from serving.kubernetes_names import FIELD_MANAGER, OPERATOR, labels
from serving.kubernetes_settings import RayOperator
from serving.versions import versions

RELEASE = "kuberay-operator"
_REPOSITORY_SECONDS = 10.0  # a proxy that answers nothing is found out before anybody thinks that `up` hangs
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

    owner: the stack that makes it. namespace: the one that the operator looks after, in `opts.depends_on`; empty: all
    of the cluster, for a stack that owns the nodes of others. node_selector: the cluster's CPU nodes.
    """
    if settings.install == "preinstalled":
        return []
    from pulumi_kubernetes.helm.v4 import Chart, RepositoryOptsArgs

    if not settings.chart:
        _check_repository(versions()["kuberay"]["chart_repository"])
    made: list[pulumi.Resource] = []
    if settings.namespace != namespace:
        made.append(_own_namespace(settings.namespace, owner, opts))
    folder = _local_folder(settings.chart)
    public = versions()["kuberay"]
    chart = Chart(
        RELEASE,
        chart=folder or settings.chart or public["chart"],
        version=None if folder else settings.version,
        repository_opts=None if settings.chart else RepositoryOptsArgs(repo=public["chart_repository"]),
        namespace=settings.namespace,
        values=chart_values(settings, namespace, node_selector or {}),
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=made, transforms=[_keep_definition])),
    )
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


def _check_repository(url: str) -> None:
    """Say in one line what Pulumi's chart resource says in two tracebacks. Raises ConfigError."""
    try:
        answer = requests.get(f"{url.rstrip('/')}/index.yaml", timeout=_REPOSITORY_SECONDS, stream=True)
        problem = "" if answer.ok else f"answered {answer.status_code}"
        answer.close()
    except requests.RequestException as error:
        problem = f"cannot be reached ({type(error).__name__})"
    if problem:
        raise ConfigError(
            "pd-mi325x:rayOperator.chart",
            f"KubeRay's chart repository {url} {problem}",
            "set it to a local folder or another chart, or rayOperator.install to preinstalled",
        )


def _local_folder(chart: str) -> str | None:
    """`chart` as an absolute path when it is a folder, counted from the project: the provider runs somewhere else."""
    if not chart:
        return None
    folder = Path(pulumi.get_root_directory()) / chart
    return str(folder) if folder.is_dir() else None


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
