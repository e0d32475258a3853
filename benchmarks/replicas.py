"""Were the replicas the same ones from the first request of a rate to the last? Read from the counters' labels.

Ray gives a restarted replica a new id, so its counters are new series beside those of its predecessor. The old ones
stay as they were while the node's metrics agent lives (`open_telemetry_metric_recorder.py` of Ray 2.55 never clears a
counter), and vanish with it. So there are two signs: more ids at work than there are replicas, and series that are
there no more.
"""

from __future__ import annotations

from benchmarks.metrics import Counters, Labels

# vLLM's counters carry the first, this repository's own (serving/replica) the second.
ID_LABELS = ("ReplicaId", "replica")


def replica_changes(delta: Counters, deployed: int) -> list[str]:
    """What shows that a replica did not live through the interval of `delta`, a sentence each.

    `delta` holds counters of engines only; `deployed` is the number of replicas of the deployment.
    """
    changes: list[str] = []
    if delta.gone:
        names = sorted({replica_of(labels) or "one without an id" for _, labels in delta.gone})
        changes.append(f"a replica is gone (restarted or scaled away) during the rate: {', '.join(names)}")
    at_work = {replica_of(labels) for (_, labels), value in delta.values.items() if value > 0} - {None}
    if len(at_work) > deployed:
        changes.append(f"{len(at_work)} replicas were at work, {deployed} are deployed: one was restarted or added")
    if any(value < 0 for value in delta.values.values()):
        changes.append("a counter went backwards: an engine was restarted during the rate")
    return changes


def replica_of(labels: Labels) -> str | None:
    """The id of the replica that a series is of; None when it carries none."""
    values = dict(labels)
    return next((values[label] for label in ID_LABELS if values.get(label)), None)
