"""JSON as its standard has it (RFC 8259), refused with one line where Python's reader is more lenient or gives up."""

from __future__ import annotations

import json
import math
from typing import Any


class NotJsonError(ValueError):
    """`problem`: what is wrong, in a few words; `line`: where, if that is known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.problem = problem
        self.line = line


def loads(text: str | bytes) -> Any:
    """The value of a JSON text. Raises NotJsonError.

    No key stands twice in an object, numbers are finite. Python gives up at some thousand digits or levels.
    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except json.JSONDecodeError as error:
        raise NotJsonError(error.msg, error.lineno) from None
    except NotJsonError:
        raise
    except UnicodeDecodeError:
        raise NotJsonError("not UTF-8") from None
    except RecursionError:
        raise NotJsonError("nested too deeply") from None
    except ValueError:  # sys.set_int_max_str_digits
        raise NotJsonError("a number of too many digits") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotJsonError(f"the key {twice[:40]!r} stands twice in an object")
    return found


def _constant(name: str) -> float:
    raise NotJsonError(f"{name} is no number")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise NotJsonError(f"{text[:20]} is too large a number")
    return value
