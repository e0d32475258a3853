"""What holds for a whole run: the image, the weights, the seed, and whether the service was awake."""

from __future__ import annotations

from benchmarks.image_content import deviations
from benchmarks.validity.finding import Verdict, fault_if, kind, note, ok
from benchmarks.validity.seen import RunSeen


@kind("image")
def image(seen: RunSeen) -> Verdict | None:
    """The engines' image does not hold the versions that the stack was rendered for, or differs between engines."""
    if not seen.image:  # a Ray cluster without our image; the target's versions are then what its checkout pins
        return None
    wrong = deviations(seen.target.versions, seen.image)
    return fault_if(wrong, "; ".join(wrong) or "the engines' image is as pinned")


@kind("priming")
def priming(seen: RunSeen) -> Verdict | None:
    """The service was not woken before, or its response times had not become alike. First requests pay for handshakes
    and compilation."""
    if seen.priming is None:
        return note("the service was not woken before the measurement")
    taken = seen.priming.seconds
    sentence = f"{len(taken)} requests woke the service: the first took {taken[0]:.2f} s, the last {taken[-1]:.2f} s"
    if seen.priming.awake:
        return ok(sentence)
    return note(sentence + ", and their times had not become alike")


@kind("weights")
def weights(seen: RunSeen) -> Verdict | None:
    """Dummy weights: latency only, the answers mean nothing, and routing of experts is not that of the model."""
    if seen.target.deployment.dummy_weights:
        return note("dummy weights: latency only, the answers mean nothing")
    return ok("real weights")


@kind("seed")
def seed(seen: RunSeen) -> Verdict | None:
    """A fixed seed: a second run of it finds its own prompts in the prefix cache."""
    if seen.scenario.seed == "per-run":
        return ok("prompts and arrivals are new in this run")
    return note(f"fixed seed {seen.scenario.seed}: a second run hits the server's prefix cache")
