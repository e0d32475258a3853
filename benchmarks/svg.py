"""What is done to an SVG from Vega before it is shown: it scales, tells its values, takes the colours of its page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"
# The light values; report.css has the same under the same names, and dark ones.
_LIGHT = {
    "ink": "#1b1f24",
    "soft": "#5a6472",
    "line": "#d9dee5",
    "card": "#ffffff",
    "fault": "#b3261e",
    "s0": "#1f6fd1",
    "s1": "#c2570c",
    "s2": "#0d7a63",
    "s3": "#7a4fc4",
}
_HEAD = 42  # height of a title and what stands below it
COLOURS = {name: f"var(--{name})" for name in _LIGHT}
SERIES = tuple(COLOURS[name] for name in ("s0", "s1", "s2", "s3"))


def finish(svg: str, label: str) -> str:
    """An element that fills its column. Vega's descriptions of points become what a pointer resting on them shows."""
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)  # noqa: S314 - made here
    for name in ("width", "height"):
        root.attrib.pop(name, None)
    root.attrib |= {"role": "img", "aria-label": label}
    for element in [element for element in root.iter() if element is not root]:
        # Vega describes lines, labels and axes too.
        told = element.get("aria-label") if element.get("aria-roledescription") in ("point", "bar") else None
        for name in ("role", "aria-label", "aria-roledescription", "aria-hidden"):
            element.attrib.pop(name, None)
        if told:
            ElementTree.SubElement(element, f"{{{_SVG}}}title").text = told
    return ElementTree.tostring(root, encoding="unicode")


def with_title(svg: str, title: str, below: str) -> str:
    """A file of its own, with a title and what stands below it: light colours themselves, for programs without CSS."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - made here
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    root.set("viewBox", f"{left:g} {top - _HEAD:g} {width:g} {height + _HEAD:g}")
    frame = {"x": f"{left:g}", "y": f"{top - _HEAD:g}", "width": f"{width:g}", "height": f"{height + _HEAD:g}"}
    text = {"x": "8", "font-family": "Liberation Sans, Arial, sans-serif"}
    head = [
        ElementTree.Element("rect", frame | {"fill": "#ffffff"}),
        ElementTree.Element(
            "text", text | {"y": "-22", "font-size": "14", "font-weight": "bold", "fill": _LIGHT["ink"]}
        ),
        ElementTree.Element("text", text | {"y": "-6", "font-size": "11", "fill": _LIGHT["soft"]}),
    ]
    head[1].text, head[2].text = title, below
    for number, element in enumerate(head):
        root.insert(number, element)
    drawn = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r"var\(--([a-z0-9]+)\)", lambda match: _LIGHT[match[1]], drawn)
