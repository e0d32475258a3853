"""`python -m serving.image_check SET`: hold this image against [platform.SET] of versions.toml; write what it is."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from serving.image_check.python_packages import (
    Found,
    check_distributions,
    check_interpreter,
    check_preloaded,
    check_rocm,
    check_transfer,
)
from serving.image_check.ucx_build import check_ucx
from serving.versions import versions

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def findings(version_set: dict[str, Any], found: Found) -> Iterator[str]:
    """Everything that is wrong, a line each; `found` gets what is there, component -> version or commit."""
    yield from check_interpreter(found)
    yield from check_distributions(version_set, found)
    if "rocm" in version_set:
        yield from check_rocm(version_set, found)
    if "ucx" in version_set:
        yield from check_ucx(version_set["ucx"], found)
    yield from check_transfer(version_set, found)
    yield from check_preloaded()


@app.command()
def check(
    version_set: Annotated[str, typer.Argument(help="A table [platform.SET] of versions.toml.")],
    output: Annotated[Path, typer.Option(help="Where to write what is in the image, as JSON.")],
) -> None:
    """Exit code 1, and nothing written, if anything is missing or of another version."""
    tables: dict[str, Any] = versions()["platform"]
    if version_set not in tables:
        typer.echo(f"error: versions.toml has no [platform.{version_set}]; it has {', '.join(tables)}", err=True)
        raise typer.Exit(1)
    found: Found = {}
    wrong = list(findings(tables[version_set], found))
    for line in wrong:
        typer.echo(f"error: {line}", err=True)
    if wrong:
        raise typer.Exit(1)
    pinned = {name: value for name, value in tables[version_set].items() if isinstance(value, str)}
    stack = {"version_set": version_set, "found": found, "pinned": pinned}
    output.write_text(json.dumps(stack, indent=2) + "\n", encoding="utf-8")
    typer.echo(output.read_text(encoding="utf-8"), nl=False)


if __name__ == "__main__":
    sys.exit(app())
