"""Were both sides of a comparison measured alike: by the same client, at about the same time?"""

from __future__ import annotations

from datetime import timedelta

from benchmarks.validity.finding import Verdict, fault, kind, note, ok
from benchmarks.validity.seen import Pair

# The rhythm of what others do on machines and networks that are shared; longer, and nothing says that it evens out.
APART = timedelta(days=1)


@kind("unequal-client")
def client(pair: Pair) -> Verdict:
    """Another AIPerf on the two sides: a fault, as it reads clocks and counts tokens its own way. Another commit of
    this benchmark, Python or tokenizer, or an unknown one, is a note."""
    sides = (pair.base, pair.candidate)
    names = dict.fromkeys(name for side in sides for name in side.client)
    values = {name: [" and ".join(side.client.get(name, [])) or "unknown" for side in sides] for name in names}
    values["tokenizer"] = [side.target.tokenizer for side in sides]
    lines = {
        name: f"{name} {base} against {candidate}" for name, (base, candidate) in values.items() if base != candidate
    }
    # A side whose own runs were made with several has all of them on both sides of this line, and is none the better.
    lines |= {name: f"{name} {both[0]}" for name, both in values.items() if name not in lines and " and " in both[0]}
    said = "; ".join(lines.values())
    if "aiperf" in lines:
        return fault(said)
    return note(said) if lines else ok("both sides were measured by the same client")


@kind("runs-apart")
def apart(pair: Pair) -> Verdict | None:
    """Over a day between the runs of one side and those of the other: a note. Hardware, network and neighbours may have
    changed meanwhile, and the difference may be theirs. Measure the sides by turns."""
    if not pair.base.started or not pair.candidate.started:
        return None
    least = min(abs(one - other) for one in pair.base.started for other in pair.candidate.started)
    hours = least.total_seconds() / 3600
    said = f"{hours:.1f} hours" if least < 2 * APART else f"{hours / 24:.0f} days"
    sentence = f"{said} lie between the runs of the two sides that are nearest to each other"
    return note(sentence, hours=hours) if least > APART else ok(sentence, hours=hours)
