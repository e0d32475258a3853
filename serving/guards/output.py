"""Findings for people and for machines: a table, JSON, SARIF."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from serving.guards.check import Finding
from serving.guards.guard import SEVERITIES, Guard

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
_DOCUMENTED = "docs/reference/guards.md"


def table(findings: Sequence[Finding], console: Console) -> None:
    """One block a guard: what, where, what would have happened, what to do. Then what is waived."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.waived is None:
            found.setdefault(finding.guard.id, []).append(finding)
    for alike in found.values():
        guard = alike[0].guard
        head = f"[{_COLOURS[guard.severity]}]{guard.severity}[/] [bold]{guard.id}[/]  {escape(guard.what)}"
        console.print(head, soft_wrap=True)
        places = "\n".join(f"  {finding.place}: {finding.detail}" for finding in alike)
        console.print(places, soft_wrap=True, markup=False)
        block = Table.grid(padding=(0, 2))
        block.add_column(no_wrap=True, style="dim")
        block.add_column(overflow="fold")  # of a source no letter is lost
        block.add_row("  silently", escape(guard.silently))
        block.add_row("  fix", escape(guard.fix))
        block.add_row("  source", escape(guard.source))
        console.print(block)
    for finding in findings:
        if finding.waived is not None:
            said = f"[dim]waived[/] {finding.guard.id}  {escape(str(finding.place))}: {escape(finding.waived)}"
            console.print(said, soft_wrap=True)


def summary(findings: Sequence[Finding]) -> str:
    """`2 errors, 1 warning; 1 waived`."""
    counts = {s: sum(f.severity == s and f.waived is None for f in findings) for s in SEVERITIES}
    named = [f"{n} {s}{'s' if n > 1 else ''}" for s, n in counts.items() if n]
    waived = sum(finding.waived is not None for finding in findings)
    return (", ".join(named) or "nothing found") + (f"; {waived} waived" if waived else "")


def as_json(findings: Sequence[Finding], versions: dict[str, dict[str, str]]) -> str:
    """A list of findings, and the versions that each target was checked for."""
    listed = [
        {
            "guard": finding.guard.id,
            "severity": finding.severity,
            "file": finding.place.file,
            "key": finding.place.key,
            "line": finding.place.line,
            "column": finding.place.column,
            "what": finding.guard.what,
            "detail": finding.detail,
            "silently": finding.guard.silently,
            "fix": finding.guard.fix,
            "source": finding.guard.source,
            "waived": finding.waived,
        }
        for finding in findings
    ]
    return json.dumps({"findings": listed, "versions": versions}, indent=2)


def as_sarif(findings: Sequence[Finding], guards: Sequence[Guard]) -> str:
    """SARIF 2.1.0 (OASIS), as code scanning takes it. A waived finding is a suppressed one."""
    rules = [
        {
            "id": guard.id,
            "shortDescription": {"text": guard.what},
            "fullDescription": {"text": f"{guard.what}. Silently: {guard.silently}."},
            "help": {"text": f"{guard.fix}. Source: {guard.source}. {_DOCUMENTED}"},
            "defaultConfiguration": {"level": guard.severity},
        }
        for guard in guards
    ]
    tool = {"driver": {"name": "pd-guards", "rules": rules}}
    results = [_result(finding) for finding in findings]
    run = {"tool": tool, "results": results}
    return json.dumps(
        {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}, indent=2
    )


def _result(finding: Finding) -> dict[str, Any]:
    place = finding.place
    located: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": place.key}]}
    if place.line is not None:
        region = {"startLine": place.line, "startColumn": place.column or 1}
        located["physicalLocation"] = {"artifactLocation": {"uri": place.file}, "region": region}
    guard = finding.guard
    result: dict[str, Any] = {
        "ruleId": guard.id,
        "level": guard.severity,
        "message": {"text": f"{guard.what}: {finding.detail}. Silently: {guard.silently}. Fix: {guard.fix}"},
        "locations": [located],
    }
    if finding.waived is not None:
        result["suppressions"] = [{"kind": "external", "justification": finding.waived}]
    return result
