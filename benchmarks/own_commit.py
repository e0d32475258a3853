"""Which version of the benchmark measured: the commit of the checkout that this package lies in."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_S = 10.0
# Set inside a git hook, for instance; they would lead to another repository than the one this lies in.
MISLEADING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")


def own_commit(root: Path = ROOT) -> str:
    """The commit of the checkout `root`, with `-dirty` behind it when files differ from it.

    Empty when that cannot be told: `root` is no git checkout, lies inside another one, or there is no git.
    """
    try:
        if Path(_git(root, "rev-parse", "--show-toplevel")).resolve() != root.resolve():
            return ""
        return _git(root, "rev-parse", "HEAD") + ("-dirty" if _git(root, "status", "--porcelain") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(root: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in MISLEADING}
    # Without optional locks, so that a look never stands in the way of the user's own git command.
    command = ["git", "-C", str(root), "--no-optional-locks", *arguments]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout.strip()
