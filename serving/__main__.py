"""`python -m serving render STACK`: what would be deployed, as YAML, without a cluster, Pulumi or an engine.

What reads stacks is imported by the commands that do: it takes longer than the check of a manifest.
"""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from serving.command_line import run
from serving.guards.command import check_targets, list_guards

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
    from serving.render import rendered

    typer.echo(rendered(stack, format.value), nl=False)


@app.command()
def stacks() -> None:
    """List the shipped stacks: model, topology, GPUs, scenario."""
    from serving.stack_files import load_stack, stack_names

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
