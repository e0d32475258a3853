"""How the command lines of `serving` end."""

import typer

from serving.errors import ConfigError


def run(app: typer.Typer, arguments: list[str] | None = None) -> int:
    """Run one command, by default that of the command line; what a user can put right is one line. An exit code."""
    try:
        app(arguments, standalone_mode=True)
    except ConfigError as error:
        typer.echo(f"error: {error}", err=True)
        return 1
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0
