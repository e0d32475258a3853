"""Renders a template of this folder into a page of one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from benchmarks.terminal import milliseconds

_HERE = Path(__file__).parent


def render(template: str, **values: Any) -> str:
    """The page. Templates have `ms`, a filter, and `style`, what page.css says."""
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["ms"] = milliseconds
    style = Markup((_HERE / "page.css").read_text(encoding="utf-8"))  # noqa: S704 - a file of this package
    return environment.get_template(template).render(style=style, **values)
