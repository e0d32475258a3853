"""Which inputs differ, and whether that needs another object instead of a changed one."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pulumi.runtime.proto import provider_pb2

from tools.rehearsal.pulumi_wire import Properties

_Kind = provider_pb2.PropertyDiff.Kind


def differences(kind: str, olds: Properties, news: Properties) -> provider_pb2.DiffResponse:
    """The answer to the engine, with one entry for each property path."""
    from tools.rehearsal.digitalocean_schema import KINDS

    found = dict(_paths(olds, news, ""))
    replacing = {path for path in found if path in KINDS[kind].replaces or _downgrade(path, olds, news)}
    detailed = {
        path: provider_pb2.PropertyDiff(kind=_named(change, path in replacing), inputDiff=True)
        for path, change in found.items()
    }
    response = provider_pb2.DiffResponse
    return response(
        changes=response.DIFF_SOME if found else response.DIFF_NONE,
        diffs=sorted({path.split(".")[0] for path in found}),
        replaces=sorted({path.split(".")[0] for path in replacing}),
        detailedDiff=detailed,
        hasDetailedDiff=True,
    )


def _paths(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Path -> ADD, DELETE or UPDATE; lists as a whole."""
    for key in sorted(old.keys() | new.keys()):
        before, after, path = old.get(key), new.get(key), f"{prefix}{key}"
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from _paths(before, after, f"{path}.")
        elif before != after:
            yield path, "ADD" if before is None else "DELETE" if after is None else "UPDATE"


def _downgrade(path: str, olds: Properties, news: Properties) -> bool:
    """A cluster can only go to a newer version (resource_kubernetes_cluster.go, CustomizeDiff)."""
    if path != "version" or "version" not in olds:
        return False
    old, new = ([int(number) for number in re.findall(r"\d+", side["version"])] for side in (olds, news))
    return new < old


def _named(change: str, replace: bool) -> "_Kind.ValueType":
    return _Kind.Value(f"{change}_REPLACE" if replace else change)
