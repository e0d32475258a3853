"""pydantic's complaints about settings as our one line: where, in words, and what was given."""

from collections.abc import Mapping
from typing import Any

_SECRETS = {"huggingFaceToken"}  # what was given is not shown
_LONGEST_SHOWN = 200
_WORDS = {
    "string_too_short": "is empty",  # our texts have no other least length
    "string_type": "has to be text, a string in quotes",
}


def where(location: tuple[int | str, ...]) -> str:
    """The key as a stack file has it. pydantic calls a wrong key of an object `[key]`, behind the key itself."""
    return ".".join(str(part) for part in location if part != "[key]")


def in_words(complaint: Mapping[str, Any]) -> str:
    """What is wrong, without what pydantic puts before a check of ours, and what was given."""
    problem = _WORDS.get(complaint["type"]) or str(complaint["msg"]).removeprefix("Value error, ")
    if _SECRETS.intersection(complaint["loc"]):
        return problem
    shown = repr(complaint["input"])
    return f"{problem}, got {shown if len(shown) < _LONGEST_SHOWN else shown[:_LONGEST_SHOWN] + ' ...'}"
