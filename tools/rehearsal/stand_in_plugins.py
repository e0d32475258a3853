"""Puts stand-ins for providers that cannot be had here where a rehearsal's Pulumi looks for the published ones."""

import shlex
from pathlib import Path

from tools.toolchain.versions import versions

_LAUNCHER = Path(__file__).parent / "plugins" / "stand-in"
_PROVIDERS = ("digitalocean", "docker-build")


def put_into(home: Path) -> None:
    """Among the plugins of this Pulumi home, and not on PATH: Pulumi warns of a provider from there at every command.

    For a home that is made for a rehearsal, never for a user's own.
    """
    for provider in _PROVIDERS:
        version = versions()[f"pulumi_{provider.replace('-', '_')}"]["version"]
        folder = home / "plugins" / f"resource-{provider}-v{version}"
        folder.mkdir(parents=True, exist_ok=True)
        launcher = folder / f"pulumi-resource-{provider}"
        launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(str(_LAUNCHER))} {provider} "$@"\n')
        launcher.chmod(0o755)
