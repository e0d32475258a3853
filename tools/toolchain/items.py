"""What `ensure` can find or make and what `path` can find, by name."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from . import checkout, chromium, control_plane, environments, image_builders, kubernetes_provider, pulumi_cli, tcmalloc
from .errors import ToolchainError
from .find_python import find_python
from .find_uv import ensure_uv, find_uv

ENSURE: dict[str, Callable[[], Path]] = {
    "tools": checkout.ensure,
    "pulumi": pulumi_cli.ensure,
    **{name: partial(environments.ensure, name) for name in environments.ENVIRONMENTS},
    "tcmalloc": tcmalloc.ensure,
    "uv": ensure_uv,
    "kubernetes-provider": kubernetes_provider.ensure,
    control_plane.ITEM: control_plane.ensure,
    image_builders.ITEM: image_builders.ensure,
    chromium.ITEM: chromium.ensure,
}

# None where it is not there, or a ToolchainError that knows more about it.
FIND: dict[str, Callable[[], Path | None]] = {
    "tools": lambda: checkout.VENV if checkout.is_current() else None,
    "pulumi": lambda: pulumi_cli.installed() or pulumi_cli.built(),
    **{name: lambda name=name: environments.interpreter(name).parent.parent for name in environments.ENVIRONMENTS},
    "tcmalloc": tcmalloc.locate,
    "uv": find_uv,
    "python": find_python,
    "kubernetes-provider": kubernetes_provider.find,
    control_plane.ITEM: lambda: None if control_plane.missing() else control_plane.folder(),
    **{name: partial(control_plane.find, name) for name in control_plane.NAMES},
    image_builders.ITEM: image_builders.find,
    chromium.ITEM: chromium.locate,
}


def ensure(names: Iterable[str]) -> None:
    """Find or make each, in the order given; then put what `.venv` lacks of Pulumi into it."""
    for name in names:
        ENSURE[name]()
    if {"tools", "pulumi"} & set(names):
        checkout.link_pulumi()


def path(name: str) -> Path:
    """Where something is that `ensure` has found or made. Raises ToolchainError when it is not there."""
    place = FIND[name]()
    if place is None:
        target = "toolchain-cluster" if name in (control_plane.ITEM, *control_plane.NAMES) else "toolchain"
        raise ToolchainError(name, "not there or out of date", f"run `make {target}`")
    return place
