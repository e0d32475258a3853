"""`python -m serving check`: guards over stacks, Serve configs and manifests."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from packaging.version import InvalidVersion, Version
from rich.console import Console

from serving.errors import ConfigError
from serving.guards.all import GUARDS
from serving.guards.check import Finding, check, check_waivers
from serving.guards.guard import SEVERITIES
from serving.guards.output import as_json, as_sarif, summary, table
from serving.guards.page import text
from serving.guards.read import NothingToCheck, read
from serving.guards.view import View

# By the gravest finding that is not waived. 1 and 2 are errors of the command itself.
EXIT = {"error": 4, "warning": 3, "note": 0}
COMPONENTS = ("ray", "vllm", "ucx", "nixl", "rixl")
_LARGEST = 32 * 1024**2  # bytes; a manifest of 10,000 lines has half a million


class Format(StrEnum):
    table = "table"
    json = "json"
    sarif = "sarif"


def check_targets(
    targets: Annotated[list[str], typer.Argument(help="stack names, YAML files, or - for standard input")],
    format: Annotated[Format, typer.Option(help="table for people; json or sarif for machines")] = Format.table,
    versions: Annotated[str, typer.Option(help="of what runs there, as ray=2.60,vllm=0.29")] = "",
    waive: Annotated[list[str] | None, typer.Option(help="GUARD=REASON: let one pass; may be repeated")] = None,
    skip_others: Annotated[
        bool, typer.Option("--skip-others", help="pass over files that hold nothing of this, as a hook gets them")
    ] = False,
) -> None:
    """Look for mistakes that nobody would report. Exit code: 0 nothing or notes, 3 warnings, 4 errors."""
    given, waived = _versions(versions), _waivers(waive or [])
    found: list[Finding] = []
    checked: dict[str, dict[str, str]] = {}
    console = Console(highlight=False)
    for target in targets:
        try:
            view, own = _view(target, given)
        except NothingToCheck:
            if skip_others:
                continue
            raise
        found += check(view, GUARDS, {**own, **waived})
        checked[target] = dict(view.versions)
        if format is Format.table and view.assumed:
            named = ", ".join(f"{name} {view.versions[name]}" for name in view.assumed)
            console.print(
                f"[dim]{target} does not say its versions; checked for {named} (--versions)[/]", soft_wrap=True
            )
    if format is Format.json:
        typer.echo(as_json(found, checked))
    elif format is Format.sarif:
        typer.echo(as_sarif(found, GUARDS))
    else:
        table(found, console)
        console.print(f"{', '.join(targets)}: {summary(found)} ({len(GUARDS)} guards)", soft_wrap=True)
    raise typer.Exit(exit_code(found))


def list_guards() -> None:
    """Print docs/reference/guards.md: every guard with what it finds, for which versions, and its source."""
    typer.echo(text(GUARDS), nl=False)


def exit_code(findings: list[Finding]) -> int:
    """By the gravest that is not waived."""
    severities = {finding.severity for finding in findings if finding.waived is None}
    return next((EXIT[severity] for severity in SEVERITIES if severity in severities), 0)


def _view(target: str, versions: Mapping[str, str]) -> tuple[View, dict[str, str]]:
    """What a target holds, and what its stack file waives."""
    if target == "-":
        return read(sys.stdin.buffer.read(_LARGEST).decode(errors="replace"), "standard input", versions), {}
    path = Path(target)
    if path.suffix in (".yaml", ".yml", ".json") or "/" in target:
        try:
            if path.stat().st_size > _LARGEST:
                raise ConfigError(target, f"is larger than {_LARGEST // 1024**2} MiB", "give the manifest alone")
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise ConfigError(target, f"cannot be read: {error.strerror}") from None
        return read(text, target, versions), {}
    # Settings of stacks take longer to import than a manifest takes to check, which need not wait for them.
    from serving.guards.of_stack import view_of_stack
    from serving.stack_files import load_stack

    stack = load_stack(target)
    if versions:
        raise ConfigError("--versions", f"{target} is a stack, whose versions stand in versions.toml", "leave it out")
    check_waivers(stack.waive, GUARDS, "waive")
    return view_of_stack(stack, target), stack.waive


def _versions(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, _, version = part.strip().partition("=")
        if name not in COMPONENTS:
            raise ConfigError("--versions", f"unknown component {name!r}", f"known: {', '.join(COMPONENTS)}")
        try:
            Version(version)
        except InvalidVersion:
            raise ConfigError("--versions", f"{version!r} is no version of {name}", "write ray=2.60") from None
        found[name] = version
    return found


def _waivers(texts: list[str]) -> dict[str, str]:
    found = {name: reason for name, _, reason in (text.partition("=") for text in texts)}
    check_waivers(found, GUARDS, "--waive")
    return found
