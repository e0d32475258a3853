"""The KV reads themselves: how many, how large, in how many pieces, and how long posting and moving them took.

From the counters that this repository's callback keeps on decode, which reads (serving/replica/kv_counters.py). Every
number is a sum of NIXL's own measurement of each transfer; what Ray makes of vLLM's histograms is none.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from benchmarks.metrics import Counters

BYTES = "ray_pd_kv_bytes_transferred_total"
TRANSFERS = "ray_pd_kv_transfers_total"
DESCRIPTORS = "ray_pd_kv_descriptors_total"
POST_SECONDS = "ray_pd_kv_post_seconds_total"
TRANSFER_SECONDS = "ray_pd_kv_transfer_seconds_total"
COUNTED = (BYTES, TRANSFERS, DESCRIPTORS, POST_SECONDS, TRANSFER_SECONDS)


class Transfers(BaseModel):
    """KV reads of one decode replica during one rate, or, with an empty `replica`, of all of them.

    `bytes`, `descriptors`, `post_s` and `transfer_s` (seconds) are sums over `transfers` reads; None: not exported.
    `node` is the address Ray has for the replica's node. `transports` is what its engine let UCX use (UCX_TLS); empty:
    the engine does not say.
    """

    replica: str = ""
    node: str = ""
    transports: str = ""
    transfers: int
    bytes: int
    descriptors: int | None = None
    post_s: float | None = None
    transfer_s: float | None = None

    @property
    def mean_post_ms(self) -> float | None:
        """Milliseconds to post one read: the decode step waits for it."""
        return _each(self.post_s, self.transfers, 1000.0)

    @property
    def mean_transfer_ms(self) -> float | None:
        """Milliseconds from posting one read to its end."""
        return _each(self.transfer_s, self.transfers, 1000.0)

    @property
    def mean_descriptors(self) -> float | None:
        """Memory descriptors of one read."""
        return _each(self.descriptors, self.transfers)

    @property
    def mb_per_s(self) -> float | None:
        """10⁶ bytes per second while one read was under way. Reads overlap, so this is no rate of a link."""
        return _each(self.bytes / 1e6, self.transfer_s)


def transfers_by_replica(delta: Counters) -> list[Transfers]:
    """The reads of each decode replica in an increase of the counters, those with any, by replica id."""
    columns = {name: delta.by_labels(name) for name in COUNTED}
    found: list[Transfers] = []
    for labels, count in columns[TRANSFERS].items():
        if count <= 0:
            continue
        about = dict(labels)
        descriptors = columns[DESCRIPTORS].get(labels)
        found.append(
            Transfers(
                replica=about.get("replica", ""),
                node=about.get("NodeAddress", ""),
                transports=about.get("transports", ""),
                transfers=round(count),
                bytes=round(columns[BYTES].get(labels, 0.0)),
                descriptors=None if descriptors is None else round(descriptors),
                post_s=columns[POST_SECONDS].get(labels),
                transfer_s=columns[TRANSFER_SECONDS].get(labels),
            )
        )
    return sorted(found, key=lambda reads: reads.replica)


def together(parts: Sequence[Transfers]) -> Transfers | None:
    """All reads as one; None when there are none. What one replica does not export is not known of all either."""
    if not parts:
        return None
    return Transfers(
        transfers=sum(part.transfers for part in parts),
        bytes=sum(part.bytes for part in parts),
        descriptors=_sum([part.descriptors for part in parts]),
        post_s=_sum([part.post_s for part in parts]),
        transfer_s=_sum([part.transfer_s for part in parts]),
    )


def _sum[Number: (int, float)](values: Sequence[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if len(known) == len(values) else None


def _each(total: float | None, count: float | None, scale: float = 1.0) -> float | None:
    return total / count * scale if total is not None and count else None
