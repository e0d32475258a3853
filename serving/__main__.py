"""`python -m serving render STACK`: what would be deployed, as YAML, without a cluster, Pulumi or an engine."""

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from serving.command_line import run
from serving.engine import budget_differences
from serving.errors import ConfigError
from serving.fabric.combine import DISCOVERED
from serving.fabric_plan import fabric_plan
from serving.guards.command import check_targets, list_guards
from serving.ray_cluster import ray_service
from serving.serve_config import serve_config
from serving.stack_files import load_stack, stack_names
from serving.yaml_text import yaml_text

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


class Format(StrEnum):
    serve = "serve"
    anyscale = "anyscale"
    kubernetes = "kubernetes"


@app.command()
def render(
    stack: Annotated[str, typer.Argument(help="a stack file's name, for example pd-2p1d")],
    format: Annotated[
        Format, typer.Option(help="serve: Ray Serve config; anyscale: Anyscale service; kubernetes: the RayService")
    ] = Format.serve,
) -> None:
    """Print the Serve config of STACK, or the manifest around it, as YAML."""
    settings = load_stack(stack)
    config: dict[str, Any] = serve_config(settings)
    if format is Format.kubernetes:
        if settings.target != "kubernetes":
            raise ConfigError("--format", f"{stack} is not for Kubernetes (target: {settings.target})")
        config = ray_service(settings, stack, settings.namespace or stack)
    if format is Format.anyscale:
        # An Anyscale service owns its proxies; it takes the applications and a name.
        config = {"name": stack, "applications": config["applications"]}
    for argument, values in budget_differences(
        settings.topology_, settings.model_, settings.platform_, settings.engine
    ).items():
        typer.echo(f"# unequal budget {argument}: {', '.join(f'{role} {v}' for role, v in values.items())}")
    if fabric_plan(settings).inspect:
        typer.echo(f"# told by the nodes at `pulumi up`, and not here: {', '.join(DISCOVERED)}, supplementalGroups")
    typer.echo(yaml_text(config), nl=False)


@app.command()
def stacks() -> None:
    """List the shipped stacks: model, topology, GPUs, scenario."""
    for name in stack_names():
        stack = load_stack(name)
        typer.echo(f"{name:18} {stack.model:22} {stack.topology:6} {stack.gpus:3} GPUs  {stack.scenario}")


app.command("check")(check_targets)
app.command("guards")(list_guards)


def main(arguments: list[str] | None = None) -> int:
    """Run one command, by default that of the command line. An exit code."""
    return run(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
