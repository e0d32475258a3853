"""The Config column of UCX's protocol table: which lanes, and whether the column names all of them.

Layout: ucp_proto_multi_query_config in ucx src/ucp/proto/proto_multi.c (read on master of 2026; the lists of several
devices also printed by the 1.19.0 and 1.22.0 wheels, tests/unit/serving/ucx_logs).
"""

import re
from dataclasses import dataclass

# UCP_PROTO_CONFIG_STR_MAX is 128 bytes with the terminator (ucx src/ucp/proto/proto.h), what does not fit is dropped
# without a mark, and blanks at the end are dropped as well: seen with eight lanes on UCX 1.19.0 and 1.22.0, where the
# column ends in `13% on`, 126 characters. How many fit depends on their names: four of
# `rc_mlx5/mlx5_0:1/path0`, three of `rc_verbs/ionic_0:1/path0` or `rc_mlx5/mlx5_10:1/path0`.
_LONGEST_CONFIG = 127
_LIST = re.compile(r"\s*(?:,|\+|\band\b)\s*")
_RESOURCE = r"(?P<transport>\w+)/(?P<device>[^\s/%]+)(?:/path(?P<path>\d+))?"
_SINGLE = re.compile(_RESOURCE)
_SHARE = re.compile(rf"(?P<share>\d+)% on(?: (?:{_RESOURCE}|path(?P<only_path>\d+)))?")
# Lanes of one device: its name once, then the shares (`rc_mlx5/mlx5_0:1 50% on path0 and 50% on path1`).
_COMMON = re.compile(r"(?P<resource>\w+/[^\s%]+) (?=\d+% on)")


@dataclass(frozen=True)
class Lane:
    """One way to the peer. device: with its port, `mlx5_0:1`. path: of a device with several. share: % of the bytes."""

    transport: str
    device: str
    path: int | None = None
    share: int = 100

    def __str__(self) -> str:
        return f"{self.transport}/{self.device}" + ("" if self.path is None else f"/path{self.path}")


@dataclass(frozen=True)
class Lanes:
    """The lanes of one row. complete: False when UCX dropped some, or when the text is of no known form."""

    lanes: tuple[Lane, ...]
    complete: bool

    def __str__(self) -> str:
        return ", ".join(str(lane) for lane in self.lanes) + ("" if self.complete else ", …")


def parse_lanes(config: str) -> Lanes:
    """`34% on tcp/a, 34% on tcp/b and 32% on tcp/c` -> three lanes. What was cut off in the middle is left out."""
    text = config.strip()
    cut = len(text) >= _LONGEST_CONFIG - 1
    common = _COMMON.match(text)
    pieces = _LIST.split(text[common.end() :] if common else text)
    lanes: list[Lane] = []
    understood = True
    for piece in pieces[:-1] if cut else pieces:
        lane = _lane(piece, common["resource"] if common else None)
        if lane is None:
            understood = False
        else:
            lanes.append(lane)
    whole = sum(lane.share for lane in lanes) == 100  # percent
    return Lanes(tuple(lanes), understood and whole and not cut)


def _lane(piece: str, common: str | None) -> Lane | None:
    if single := _SINGLE.fullmatch(piece):
        path = single["path"]
        return Lane(single["transport"], single["device"], None if path is None else int(path))
    shared = _SHARE.fullmatch(piece)
    if shared is None:
        return None
    resource = _SINGLE.fullmatch(common) if common else shared
    if resource is None or resource["transport"] is None:
        return None
    path = shared["only_path"] or resource["path"]
    return Lane(resource["transport"], resource["device"], None if path is None else int(path), int(shared["share"]))
