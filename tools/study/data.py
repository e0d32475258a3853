"""The studies' results as a file."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from tools.study.capacity import Capacity
from tools.study.reuse import Reuse
from tools.study.same import Comparisons

FILE = "method-study.json"


class Studies(BaseModel):
    """Everything that was found, and how many seconds it took. `shorter`: as `capacity`, with shorter windows."""

    capacity: list[Capacity]
    shorter: list[Capacity]
    reuse: Reuse
    comparisons: list[Comparisons]
    seconds: int


def write(folder: Path, studies: Studies) -> None:
    """Write the results into `folder`, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(studies.model_dump_json(indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> Studies:
    """The results in `folder`."""
    return Studies.model_validate_json((folder / FILE).read_text(encoding="utf-8"))
