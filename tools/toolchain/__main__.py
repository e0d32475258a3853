"""`python3 -m tools.toolchain VERB`: ensure, meanwhile, path, doctor, env, prune."""

import signal
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - runs in whatever python3 is; before imports that an older one cannot read
    sys.exit(f"error: python3 is {sys.version.split()[0]}; Python 3.11 or later must be first on PATH")

import argparse

from . import background, doctor, prune, shell_env
from .errors import ToolchainError
from .items import ENSURE, FIND, ensure, path

INTERRUPTED = 130


def main(arguments: argparse.Namespace) -> int:
    """Run one verb; its exit code."""
    verb = arguments.verb
    if verb == "ensure":
        if arguments.needed_by:
            background.only_while(arguments.needed_by)
        ensure(arguments.names)
    elif verb == "meanwhile":
        background.start(arguments.needed_by, arguments.names)
    elif verb == "path":
        print(path(arguments.name))
    elif verb == "env":
        print("\n".join(shell_env.export_lines()))
    elif verb == "prune":
        prune.prune()
    else:
        findings = doctor.examine()
        print(doctor.table(findings))
        return 1 if any(finding.status == doctor.MISSING for finding in findings) else 0
    return 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.toolchain", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    makeable = sorted(ENSURE)
    verb = verbs.add_parser("ensure", help="find or make what is named")
    verb.add_argument("--while", dest="needed_by", type=int, metavar="PID", help="in the background, while PID lives")
    verb.add_argument("names", nargs="+", choices=makeable, metavar="NAME", help=", ".join(makeable))
    verb = verbs.add_parser("meanwhile", help="start `ensure --while PID` for what is missing")
    verb.add_argument("needed_by", type=int, metavar="PID")
    verb.add_argument("names", nargs="+", choices=makeable, metavar="NAME")
    verb = verbs.add_parser("path", help="print where something is")
    findable = sorted(FIND)
    verb.add_argument("name", choices=findable, metavar="NAME", help=", ".join(findable))
    verbs.add_parser("doctor", help="say what is here and what is missing")
    verbs.add_parser("env", help="print shell lines for `eval`")
    verbs.add_parser("prune", help="delete from the cache what this checkout does not use")
    return parser.parse_args()


def _terminated(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    # So that children are ended on `kill` as they are on Ctrl-C.
    signal.signal(signal.SIGTERM, _terminated)
    parsed = parse()
    try:
        sys.exit(main(parsed))
    except ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:  # part of the cache or of .venv made by another user, a full disk
        place = f"{error.filename}: " if error.filename else ""
        fix = "make sure that you may write there and that the disk has room"
        print(f"error: {place}{error.strerror or error}; {fix}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        if not getattr(parsed, "needed_by", None):  # the end of a background run is no news
            print("interrupted; the same command goes on where this one stopped", file=sys.stderr)
        sys.exit(INTERRUPTED)
