"""`python3 -m tools.toolchain VERB`: ensure, path, doctor, env."""

import signal
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - runs in whatever python3 is; before imports that an older one cannot read
    sys.exit(f"error: python3 is {sys.version.split()[0]}; Python 3.11 or later must be first on PATH")

import argparse
from collections.abc import Callable
from pathlib import Path

from . import checkout, doctor, environments, pulumi_cli, shell_env, tcmalloc
from .errors import ToolchainError
from .find_python import find_python
from .find_uv import ensure_uv, find_uv

ENSURE: dict[str, Callable[[], Path]] = {
    "tools": checkout.ensure,
    "pulumi": pulumi_cli.ensure,
    **{name: lambda name=name: environments.ensure(name) for name in environments.ENVIRONMENTS},
    "tcmalloc": tcmalloc.ensure,
    "uv": ensure_uv,
}


def ensure(names: list[str]) -> None:
    """Find or make each, in the order given; then put what `.venv` lacks of Pulumi into it."""
    for name in names:
        ENSURE[name]()
    if {"tools", "pulumi"} & set(names):
        checkout.link_pulumi()


def path(name: str) -> Path:
    """Where something is that `ensure` has found or made. Raises ToolchainError when it is not there."""
    if name in environments.ENVIRONMENTS:
        return environments.interpreter(name).parent.parent
    found = {
        "tools": lambda: checkout.VENV if checkout.is_current() else None,
        "pulumi": lambda: pulumi_cli.installed() or pulumi_cli.built(),
        "tcmalloc": tcmalloc.locate,
        "uv": find_uv,
        "python": find_python,
    }[name]()
    if found is None:
        raise ToolchainError(name, "not there or out of date", "run `make toolchain`")
    return found


def main() -> int:
    """Parse the command line and run one verb."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.toolchain", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("ensure", help="find or make what is named")
    verb.add_argument("names", nargs="+", choices=sorted(ENSURE), metavar="NAME", help=", ".join(sorted(ENSURE)))
    verb = verbs.add_parser("path", help="print where something is")
    verb.add_argument("name", choices=sorted({*ENSURE, "python"}), metavar="NAME")
    verbs.add_parser("doctor", help="say what is here and what is missing")
    verbs.add_parser("env", help="print shell lines for `eval`")
    arguments = parser.parse_args()
    if arguments.verb == "ensure":
        ensure(arguments.names)
    elif arguments.verb == "path":
        print(path(arguments.name))
    elif arguments.verb == "env":
        print("\n".join(shell_env.export_lines()))
    else:
        findings = doctor.examine()
        print(doctor.table(findings))
        return 1 if any(finding.status == doctor.MISSING for finding in findings) else 0
    return 0


def _terminated(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    # So that children are ended on `kill` as they are on Ctrl-C.
    signal.signal(signal.SIGTERM, _terminated)
    try:
        sys.exit(main())
    except ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:  # part of the cache or of .venv made by another user, a full disk
        place = f"{error.filename}: " if error.filename else ""
        fix = "make sure that you may write there and that the disk has room"
        print(f"error: {place}{error.strerror or error}; {fix}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on where this one stopped", file=sys.stderr)
        sys.exit(130)
