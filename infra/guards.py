"""Guards over a stack: what will not do what it says ends the program, before anything is registered."""

import pulumi

from infra.one_line import end_with_all
from serving.guards.all import GUARDS
from serving.guards.check import Finding, check, check_waivers
from serving.guards.of_stack import view_of_stack
from serving.stack import Stack
from serving.stack_files import PROJECT


def run_guards(stack: Stack, name: str) -> None:
    """Errors end the program, one line each; warnings are shown. Notes are for `python -m serving check`.

    Raises ConfigError for a waiver of a guard that there is not.
    """
    check_waivers(stack.waive, GUARDS, f"{PROJECT}:waive")
    findings = check(view_of_stack(stack, name), GUARDS, stack.waive)
    for finding in findings:
        if finding.waived is not None:
            pulumi.log.info(f"{finding.place.key}: {finding.guard.id} is waived: {finding.waived}")
        elif finding.severity == "warning":
            pulumi.warn(_line(finding))
    errors = [_line(finding) for finding in findings if finding.severity == "error" and finding.waived is None]
    if errors:
        end_with_all(errors)


def _line(finding: Finding) -> str:
    guard = finding.guard
    return f"{finding.place.key}: {guard.what} ({finding.detail}): {guard.silently}; {guard.fix} [{guard.id}]"
