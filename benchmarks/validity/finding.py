"""What a check says, and what a check is: a small function with a name, told apart from what it looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel

Outcome = Literal["ok", "note", "fault"]
Evidence = float | int | str | None


class Finding(BaseModel):
    """One check's outcome. `ok`; `note`: say so when quoting the numbers; `fault`: the numbers must not be used.

    `evidence` holds the numbers of the sentence by name, unrounded.
    """

    id: str
    outcome: Outcome
    sentence: str
    evidence: dict[str, Evidence] = {}


@dataclass(frozen=True)
class Verdict:
    """A finding without its name, as a check's function returns it."""

    outcome: Outcome
    sentence: str
    evidence: dict[str, Evidence] = field(default_factory=dict)


def ok(sentence: str, **evidence: Evidence) -> Verdict:
    return Verdict("ok", sentence, evidence)


def note(sentence: str, **evidence: Evidence) -> Verdict:
    return Verdict("note", sentence, evidence)


def fault(sentence: str, **evidence: Evidence) -> Verdict:
    return Verdict("fault", sentence, evidence)


def fault_if(wrong: object, sentence: str, **evidence: Evidence) -> Verdict:
    return Verdict("fault" if wrong else "ok", sentence, evidence)


@dataclass(frozen=True)
class Kind[Subject]:
    """A kind of finding: its id, and the function that looks for it. Calling it gives the finding.

    The function returns None where the check does not apply, or where what it needs was not collected.
    overload: a service that is offered more than it can serve shows this too, and nothing else need be wrong.
    """

    id: str
    look: Callable[[Subject], Verdict | None]
    overload: bool

    @property
    def meaning(self) -> str:
        """The first paragraph of the function's docstring, on one line."""
        return " ".join((self.look.__doc__ or "").split("\n\n")[0].split())

    def __call__(self, seen: Subject) -> Finding | None:
        verdict = self.look(seen)
        if verdict is None:
            return None
        return Finding(id=self.id, outcome=verdict.outcome, sentence=verdict.sentence, evidence=verdict.evidence)


@dataclass(frozen=True)
class kind:  # noqa: N801
    """A decorator: gives the function below it a name: it becomes a Kind."""

    id: str
    overload: bool = False

    def __call__[Subject](self, look: Callable[[Subject], Verdict | None]) -> Kind[Subject]:
        return Kind(self.id, look, self.overload)
