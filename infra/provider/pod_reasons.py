"""Why pods do not run, in the cluster's own words: pure functions over pod objects of the Kubernetes API."""

from collections.abc import Iterable
from typing import Any

_STARTING = ("ContainerCreating", "PodInitializing")  # the ordinary way up, nothing to explain
_CHARACTERS = 300


def not_ready(pods: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Pod name -> why it is not ready; pods that are ready, or on their way out, are left out."""
    return {
        pod["metadata"]["name"]: _reason(pod)
        for pod in pods
        if not is_ready(pod) and not pod["metadata"].get("deletionTimestamp")
    }


def is_ready(pod: dict[str, Any]) -> bool:
    return _condition(pod, "Ready").get("status") == "True"


def summary(reasons: dict[str, str], most: int = 3) -> str:
    """A few of the reasons in one line: pods that say the same are told once, with their number."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    parts = [
        f"{names[0] if len(names) == 1 else f'{len(names)} pods ({names[0]}, ...)'}: {reason}"
        for reason, names in list(by_reason.items())[:most]
    ]
    if len(by_reason) > most:
        parts.append(f"{len(by_reason) - most} more reasons")
    return "; ".join(parts)


def _reason(pod: dict[str, Any]) -> str:
    status = pod.get("status", {})
    scheduled = _condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return _short(f"not scheduled: {scheduled.get('message') or scheduled.get('reason')}")
    for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        state = container.get("state", {})
        if (waiting := state.get("waiting")) and waiting.get("reason") not in _STARTING:
            text = f"{container['name']} {waiting.get('reason')}"
            last = container.get("lastState", {}).get("terminated")
            if last:
                text += f", last exit code {last.get('exitCode')} ({last.get('reason')})"
            return _short(f"{text}: {waiting.get('message') or 'no message'}")
        if (ended := state.get("terminated")) and ended.get("exitCode"):
            return _short(f"{container['name']} ended with exit code {ended['exitCode']} ({ended.get('reason')})")
    if status.get("phase") == "Failed":
        return _short(f"failed: {status.get('message') or status.get('reason') or 'no reason given'}")
    if status.get("phase") == "Running":
        return "running, not ready yet"
    return "starting"


def _condition(pod: dict[str, Any], kind: str) -> dict[str, Any]:
    conditions = pod.get("status", {}).get("conditions") or []
    return next((condition for condition in conditions if condition["type"] == kind), {})


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CHARACTERS else f"{line[:_CHARACTERS]} ..."
