"""How long a benchmark may take before Kubernetes ends it: a bound for what hangs, not for what is slow."""

from benchmarks.metrics import Settling
from benchmarks.priming import MOST
from benchmarks.scenario import Scenario

# Seconds. A Job's deadline counts from its creation: a node, a volume and an image of a gigabyte come first.
_BEFORE_IT_RUNS = 1800
# The first answer of a cold service took 50 s (benchmarks/priming.py), later ones far less.
_A_WAKING_REQUEST = 30
# AIPerf makes its prompts before it sends any: 2 min for 36 short ones on two busy cores (rehearsal).
_PREPARING_A_RATE = 300
_MARGIN = 2


def deadline_seconds(scenario: Scenario) -> int:
    """Twice what the scenario takes when every rate ends with a request that runs into its own timeout."""
    counters = 2 * Settling().limit_s
    rates = sum(
        scenario.seconds(rate) + scenario.request_timeout_s + counters + _PREPARING_A_RATE for rate in scenario.rates
    )
    return round(_MARGIN * (_BEFORE_IT_RUNS + MOST * _A_WAKING_REQUEST + counters + rates))
