"""The order of things on Kubernetes: nodes, images, checks, namespace, network, RDMA, weights, service, benchmark."""

from typing import Any

import pulumi

from infra.benchmark_target import benchmark_target
from infra.benchmark_template import benchmark_template
from infra.cluster.access import KubernetesAccess
from infra.cluster.existing import existing_cluster
from infra.cluster.owned_by_stack import cluster_of_stack
from infra.cluster_preflight import ClusterPreflight
from infra.drift import heal_by_force
from infra.fabric import fabric
from infra.fabric_inspector import inspect_fabric
from infra.images import build_images
from infra.kept_objects import KeptObjects, kept_of
from infra.late import Late
from infra.monitoring import monitoring
from infra.namespace import check_stack_name, make_namespace
from infra.operator_chart import check_chart
from infra.ray_operator import ray_operator
from infra.ray_service import deploy_ray_service, wait_for_it
from infra.rdma_gate import rdma_gate
from infra.still_there import still_there
from infra.weights import weights
from serving.cluster import DoksCluster, ExistingCluster, NodePoolStack, StackCluster
from serving.fabric_plan import fabric_plan
from serving.kubernetes_names import METRICS_PORT, METRICS_SERVICE, SERVE_PORT, SERVE_SERVICE
from serving.stack import Stack


def deploy_on_kubernetes(stack: Stack) -> None:
    """A topology stack: everything from the nodes to the benchmark's template."""
    name = pulumi.get_stack()
    check_stack_name(name, stack.namespace)
    if stack.installs_operator:
        check_chart(stack.ray_operator)
    namespace = stack.namespace or name
    plan = fabric_plan(stack)
    access = _nodes(stack)  # refuses settings: before images are registered
    images = Late(build_images(stack, name))
    preflight = ClusterPreflight("preflight", stack, name, namespace, access)
    kept = KeptObjects(
        "kept",
        name,
        access,
        kept_of(stack, namespace),
        namespace=namespace,
        cluster_goes=isinstance(stack.cluster, DoksCluster),
        opts=pulumi.ResourceOptions(depends_on=[preflight]),
    )
    # Everything in the cluster is put there by this provider: made after the checks, gone before it is said what stays.
    provider = _provider(access, [preflight, kept])
    cluster_wide = pulumi.ResourceOptions.merge(
        still_there(stack, namespace, access), pulumi.ResourceOptions(provider=provider)
    )
    home = make_namespace(stack, name, namespace, cluster_wide)
    inside = pulumi.ResourceOptions.merge(
        cluster_wide, pulumi.ResourceOptions(depends_on=[home], transforms=[heal_by_force])
    )
    operator = _own_operator(stack, name, namespace, inside)
    loaded = weights(stack, name, namespace, inside, images)
    network = fabric(stack, name, namespace, inside)
    facts, inspectors = inspect_fabric(stack, plan, name, namespace, access, images, inside)
    late = images.with_facts(facts)
    after_network = pulumi.ResourceOptions(depends_on=[home, *network, *inspectors])
    gate = rdma_gate(stack, plan, name, namespace, access, late, after_network)
    ready = [*operator, *network, *inspectors, gate, *loaded]
    service, exporter = deploy_ray_service(
        stack,
        name,
        namespace,
        late,
        gate,
        pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(depends_on=ready)),
    )
    watchers = monitoring(stack, name, namespace, inside)

    service_url = f"http://{SERVE_SERVICE}.{namespace}.svc:{SERVE_PORT}"
    metrics = f"http://{METRICS_SERVICE}.{namespace}.svc:{METRICS_PORT}/metrics"
    target = benchmark_target(stack, service_url, metrics_service=metrics, fabric=gate.for_benchmarks)
    # Gone before the weights: Kubernetes keeps a claim as long as any pod names it, one that has ended too.
    with_weights = pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(depends_on=loaded))
    job, template = benchmark_template(stack, name, target, images, with_weights, namespace)
    wait_for_it(stack, namespace, access, late, service, [home, *ready, exporter, *watchers, template])
    pulumi.export("service_url", service_url)
    pulumi.export("benchmark", target)
    pulumi.export("benchmark_job", job)
    _export_access(access, namespace)


def deploy_node_pool(stack: NodePoolStack) -> None:
    """A pool stack: nodes that outlive the topology stacks on them, and the one operator they share."""
    from infra.cluster.doks import DoksCluster as Doks

    name = pulumi.get_stack()
    settings = stack.ray_operator.in_namespace("kuberay")
    check_stack_name(name, settings.namespace)
    if settings.install == "chart":
        check_chart(settings)
    access = Doks("doks", stack.cluster, stack.node_pool.nodes).access
    kept = KeptObjects("kept", name, access, [], cluster_goes=True)
    opts = pulumi.ResourceOptions(provider=_provider(access, [kept]))
    ray_operator(settings, name, opts, node_selector=stack.cluster.profile.system_node_selector)
    pulumi.export("nodes", stack.node_pool.nodes)
    _export_access(access, "")


def _own_operator(stack: Stack, name: str, namespace: str, opts: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """The operator of this stack alone; on a shared pool the stack that owns the nodes has one for all."""
    if not stack.installs_operator:
        return []
    settings = stack.ray_operator.in_namespace(namespace)
    return ray_operator(settings, name, opts, namespace=namespace, node_selector=stack.profile.system_node_selector)


def _nodes(stack: Stack) -> KubernetesAccess:
    cluster = stack.cluster
    if isinstance(cluster, DoksCluster):
        from infra.cluster.doks import DoksCluster as Doks  # its SDK takes 2.7 s to import

        return Doks("doks", cluster, stack.topology_.replicas).access
    if isinstance(cluster, StackCluster):
        return cluster_of_stack(cluster)
    assert isinstance(cluster, ExistingCluster)  # noqa: S101  validated: target kubernetes
    return existing_cluster(cluster)


def _provider(access: KubernetesAccess, depends_on: list[pulumi.Resource]) -> Any:
    from pulumi_kubernetes import Provider

    return Provider(
        "kubernetes",
        kubeconfig=access.kubeconfig,
        context=access.context or None,
        # The benchmark's target changes with the topology. A benchmark that is running read it when it began.
        enable_config_map_mutable=True,
        opts=pulumi.ResourceOptions(depends_on=[*access.depends_on, *depends_on]),
    )


def _export_access(access: KubernetesAccess, namespace: str) -> None:
    pulumi.export("cluster", {"kubeconfig": access.kubeconfig, "context": access.context, "namespace": namespace})
    if not isinstance(access.kubeconfig, str):  # its content, for people: `pulumi stack output kubeconfig`
        pulumi.export("kubeconfig", access.kubeconfig)
