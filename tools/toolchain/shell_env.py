"""What a shell needs to use this checkout: `eval "$(make -s env)"`."""

import os
import pwd
import shlex
from pathlib import Path

from .checkout import VENV
from .environments import directory

PASSPHRASE_VARIABLES = ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE")


def pulumi_home() -> Path:
    """Where Pulumi keeps its own things. Like Pulumi, ask the user database: $HOME may have been changed."""
    return Path(os.environ.get("PULUMI_HOME") or Path(pwd.getpwuid(os.getuid()).pw_dir) / ".pulumi")


def passphrase_file() -> Path:
    """Where `make stacks` keeps the passphrase of a user who has chosen none."""
    return pulumi_home() / "pd-mi325x.passphrase"


def passphrase_chosen() -> bool:
    """Whether the user says by environment what the passphrase is (an empty one counts)."""
    return any(name in os.environ for name in PASSPHRASE_VARIABLES)


def passphrase_export() -> str:
    """The line that makes Pulumi use our passphrase file."""
    return f"export PULUMI_CONFIG_PASSPHRASE_FILE={shlex.quote(str(passphrase_file()))}"


def export_lines() -> list[str]:
    """Shell lines: `.venv/bin` first on PATH, AIPerf where it is there, and our passphrase file where it exists and
    nothing else is chosen."""
    lines = [f'export PATH={shlex.quote(str(VENV / "bin"))}:"$PATH"']
    if (aiperf := directory("benchmark") / "bin" / "aiperf").exists():
        lines.append(f"export PD_MI325X_AIPERF={shlex.quote(str(aiperf))}")
    if not passphrase_chosen() and passphrase_file().exists():
        lines.append(passphrase_export())
    return lines
