"""The order of things."""

import pulumi

from benchmarks.errors import BenchmarkError
from infra.benchmark_target import benchmark_target
from infra.cluster.local import LocalRayCluster
from infra.guards import run_guards
from infra.one_line import end_with
from infra.serve_application import ServeApplication
from infra.settings import read_settings
from serving.cluster import NodePoolStack
from serving.errors import ConfigError
from serving.stack import Stack
from tools.toolchain.errors import ToolchainError


def deploy() -> None:
    """Deploy the selected stack. A setting that cannot work ends the program with one line and nothing registered."""
    try:
        stack = read_settings()
        if isinstance(stack, NodePoolStack):
            from infra.kubernetes_program import deploy_node_pool

            deploy_node_pool(stack)
        else:
            _deploy(stack)
    except (ConfigError, ToolchainError, BenchmarkError) as error:
        end_with(str(error))


def _deploy(stack: Stack) -> None:
    run_guards(stack, pulumi.get_stack())
    if stack.target == "kubernetes":
        from infra.kubernetes_program import deploy_on_kubernetes

        deploy_on_kubernetes(stack)
        return
    application, metrics_urls = _on_local_cluster(stack) if stack.ray is None else _on_existing_cluster(stack)
    pulumi.export("service_url", application.serviceUrl)
    pulumi.export("benchmark", benchmark_target(stack, application.serviceUrl, metrics_urls))


def _on_local_cluster(stack: Stack) -> tuple[ServeApplication, pulumi.Output[list[str]]]:
    cluster = LocalRayCluster("ray", stack)
    application = ServeApplication(
        "llm",
        stack,
        address=cluster.address,
        service_url=cluster.serviceUrl,
        token_file=cluster.tokenFile,
        # Both change when the head is started anew, and then the application has to be put there again.
        head=cluster.directory,
    )
    return application, cluster.metricsUrls


def _on_existing_cluster(stack: Stack) -> tuple[ServeApplication, pulumi.Output[list[str]] | list[str]]:
    assert stack.ray is not None  # noqa: S101  settings: target ray has one or the other
    application = ServeApplication(
        "llm",
        stack,
        address=stack.ray.address,
        service_url=stack.ray.service_url,
        token_file=stack.ray.token_file,
        ca_file=stack.ray.ca_file,
        headers_file=stack.ray.headers_file,
    )
    # Ray's own discovery names addresses inside the cluster; a stack file may name the ones that reach it from here.
    return application, stack.ray.metrics_urls or application.metricsUrls
