"""What the state of a Job and its pod means: still waiting, and for what; running; ended, and how. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

# Reasons of a waiting container that seldom go away by themselves. Kubelet alternates between some of them.
STUCK = (
    *("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"),
    *("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"),
)


@dataclass(frozen=True)
class Waiting:
    """No container runs yet. `stuck`: the reason is one that somebody has to put right."""

    reason: str
    stuck: bool = False


@dataclass(frozen=True)
class Running:
    """The container runs."""


@dataclass(frozen=True)
class Ended:
    """It is over. code: the container's exit code; None where none was recorded, and `reason` says why then."""

    code: int | None
    reason: str = ""


State = Waiting | Running | Ended


def job_finished(job: Json) -> bool:
    """Whether the Job controller has called it Complete or Failed."""
    return _condition(job, "Complete") is not None or _condition(job, "Failed") is not None


def newest(pods: Sequence[Json]) -> Json | None:
    """The pod made last."""
    return max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"], default=None)


def job_state(job: Json, pod: Json | None, container: str, events: Sequence[Json] = ()) -> State:
    """State of a Job whose one pod is `pod`, if it has one. `events` are the warnings about Job and pod."""
    seen = pod_state(pod, container, events) if pod else _no_pod(events)
    if isinstance(seen, Ended) and seen.code is not None:
        return seen
    failed = _condition(job, "Failed")
    if failed is not None:
        reason = ": ".join(filter(None, (failed.get("reason"), failed.get("message"))))
        return Ended(None, seen.reason if isinstance(seen, Ended) and seen.reason else reason)
    if _condition(job, "Complete") is not None:
        return Ended(0)
    return seen


def pod_state(pod: Json, container: str, events: Sequence[Json] = ()) -> State:
    """State of one container of a pod."""
    status = pod.get("status", {})
    found = next((s for s in status.get("containerStatuses", []) if s["name"] == container), {})
    state = found.get("state", {})
    if "terminated" in state:
        return Ended(state["terminated"]["exitCode"], _told(state["terminated"]))
    if status.get("phase") in ("Succeeded", "Failed"):
        return Ended(None, _told(status) or f"the pod {status['phase'].lower()}")
    if "running" in state:
        return Running()
    unscheduled = _condition(pod, "PodScheduled", "False")
    if unscheduled is not None:
        return Waiting(f"the pod is not scheduled: {unscheduled.get('message') or unscheduled.get('reason') or '?'}")
    waiting = state.get("waiting", {})
    if waiting.get("reason") in STUCK:
        return Waiting(f"the container does not start: {_told(waiting)}", stuck=True)
    warning = latest_warning(events)
    if not pod.get("spec", {}).get("nodeName"):
        return Waiting("the pod waits for the scheduler")
    return Waiting(f"the container starts on {pod['spec']['nodeName']}" + (f": {warning}" if warning else ""))


def latest_warning(events: Sequence[Json]) -> str:
    """The newest warning among events, as `reason: message`; empty when there is none."""
    warnings = [event for event in events if event.get("type") == "Warning"]
    last = max(warnings, key=_time, default=None)
    return _told(last) if last else ""


def _no_pod(events: Sequence[Json]) -> Waiting:
    warning = latest_warning(events)
    # FailedCreate: a quota, a pod security level, an admission webhook.
    return Waiting(f"there is no pod yet{': ' if warning else ''}{warning}", stuck=bool(warning))


def _condition(thing: Json, kind: str, status: str = "True") -> Json | None:
    conditions = thing.get("status", {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == kind and c["status"] == status), None)


def _told(thing: Json) -> str:
    words = (thing.get("reason"), thing.get("message"))
    return " ".join(": ".join(word for word in words if word).split())[:300]


def _time(event: Json) -> str:
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")
