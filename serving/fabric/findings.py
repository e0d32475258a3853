"""What is said about a node's fabric: a severity, what was found, and what to do."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

Severity = Literal["error", "warning", "note"]


class Finding(BaseModel):
    """error: KV cannot move as it should. warning: it may be slow, or fail. note: good to know.

    code: what kind of finding it is, one word, for machines.
    """

    model_config = ConfigDict(frozen=True)

    severity: Severity
    code: str
    text: str
    fix: str = ""


def error(code: str, text: str, fix: str) -> Finding:
    return Finding(severity="error", code=code, text=text, fix=fix)


def warning(code: str, text: str, fix: str) -> Finding:
    return Finding(severity="warning", code=code, text=text, fix=fix)


def note(code: str, text: str, fix: str = "") -> Finding:
    return Finding(severity="note", code=code, text=text, fix=fix)
