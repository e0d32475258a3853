"""`python -m serving render STACK`: what would be deployed, as YAML, without a cluster, Pulumi or an engine."""

from enum import StrEnum
from typing import Annotated, Any

import typer
import yaml

from serving.engine import budget_differences
from serving.errors import ConfigError
from serving.serve_config import serve_config
from serving.stack_files import load_stack, stack_names

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


class Format(StrEnum):
    serve = "serve"
    anyscale = "anyscale"


@app.command()
def render(
    stack: Annotated[str, typer.Argument(help="a stack file's name, for example pd-2p1d")],
    format: Annotated[Format, typer.Option(help="serve: Ray Serve config; anyscale: Anyscale service")] = Format.serve,
) -> None:
    """Print the Serve config of STACK as YAML."""
    settings = load_stack(stack)
    config: dict[str, Any] = serve_config(settings)
    if format is Format.anyscale:
        # An Anyscale service owns its proxies; it takes the applications and a name.
        config = {"name": stack, "applications": config["applications"]}
    for argument, values in budget_differences(
        settings.topology_, settings.model_, settings.platform_, settings.engine
    ).items():
        typer.echo(f"# unequal budget {argument}: {', '.join(f'{role} {v}' for role, v in values.items())}")
    typer.echo(yaml.safe_dump(config, sort_keys=False), nl=False)


@app.command()
def stacks() -> None:
    """List the shipped stacks: model, topology, GPUs, scenario."""
    for name in stack_names():
        stack = load_stack(name)
        typer.echo(f"{name:18} {stack.model:22} {stack.topology:6} {stack.gpus:3} GPUs  {stack.scenario}")


if __name__ == "__main__":
    try:
        app()
    except ConfigError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(1) from None
