"""How long a benchmark may take before Kubernetes ends it: a bound for what hangs, not for what is slow."""

from benchmarks.metrics import Settling
from benchmarks.priming import MOST
from benchmarks.scenario import Scenario

# Seconds. A Job's deadline counts from its creation: a node, a volume and an image of a gigabyte come first.
_BEFORE_IT_RUNS = 1800
# Measured on the CPU stack, the longest each: the first answers of a cold service (benchmarks/priming.py), and AIPerf
# making 36 short prompts on two busy cores, which it does before it sends any.
_A_WAKING_REQUEST = 50
_PREPARING_A_RATE = 120
# For what was not measured: the same with a large model, and prompts of thousands of tokens on a node of 8 cores.
_MARGIN = 2


def deadline_seconds(scenario: Scenario) -> int:
    """Twice what the scenario takes at most: each rate as long as it may be, and ending with a request that runs into
    its own timeout; of a search, as many rates as it may measure, all at its lowest.
    """
    counters = 2 * Settling().limit_s
    a_rate = scenario.request_timeout_s + counters + _PREPARING_A_RATE
    rates = sum(scenario.most_seconds(rate) + a_rate for rate in _rates(scenario))
    return round(_MARGIN * (_BEFORE_IT_RUNS + MOST * _A_WAKING_REQUEST + counters + rates))


def _rates(scenario: Scenario) -> list[float]:
    if scenario.search is None:
        return scenario.rates
    return [scenario.search.lowest] * (scenario.search.most_runs * len(scenario.slo_sets))
