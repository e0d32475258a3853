"""What the engines' images have in them, as the engines export it (serving/replica/stack_info.py)."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.metrics import Counters

_METRIC = "ray_pd_stack_info_total"
_UNTOLD = "(not told)"  # a sample without the label is no reason to call the image well
# Component of the image -> key of the pinned versions, where the two are the same thing. UCX tells a short commit.
_PINNED = {"ray": "ray", "vllm": "vllm", "ucx_commit": "ucx"}


def image_content(counters: Counters) -> dict[str, list[str]]:
    """Component -> its versions on the engines, sorted: one, unless engines run different images. Empty without any."""
    found: dict[str, set[str]] = {}
    for labels in counters.by_labels(_METRIC):
        named = dict(labels)
        found.setdefault(named.get("component", _UNTOLD), set()).add(named.get("version", _UNTOLD))
    return {component: sorted(versions) for component, versions in sorted(found.items())}


def deviations(pinned: Mapping[str, str], image: Mapping[str, list[str]]) -> list[str]:
    """In words, what of the image is not what the stack was rendered for, and what differs between engines."""
    lines = [f"engines differ in {name}: {', '.join(found)}" for name, found in image.items() if len(found) > 1]
    for component, key in _PINNED.items():
        wanted = pinned.get(key)
        for version in image.get(component, []):
            if wanted and version != wanted and not (component.endswith("_commit") and wanted.startswith(version)):
                lines.append(f"the image has {key} {version}, the stack was rendered for {wanted}")
    return lines
