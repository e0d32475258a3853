"""Puts the stand-in for DigitalOcean's provider where a rehearsal's Pulumi looks for the published one."""

import shlex
from pathlib import Path

from tools.toolchain.versions import versions

_LAUNCHER = Path(__file__).parent / "plugins" / "pulumi-resource-digitalocean"


def put_into(home: Path) -> None:
    """Among the plugins of this Pulumi home, and not on PATH: Pulumi warns of a provider from there at every command.

    For a home that is made for a rehearsal, never for a user's own.
    """
    folder = home / "plugins" / f"resource-digitalocean-v{versions()['pulumi_digitalocean']['version']}"
    folder.mkdir(parents=True, exist_ok=True)
    launcher = folder / _LAUNCHER.name
    launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(str(_LAUNCHER))} "$@"\n')
    launcher.chmod(0o755)
