"""What a difference in rate is worth: money for tokens, and nodes for a load, with and without rounding."""

from __future__ import annotations

import math

from pydantic import BaseModel

from benchmarks.compared_side import ComparedSide
from benchmarks.cost import Capacity, Count, Interval, Saving, cost_per_million_output_tokens, nodes_for, saving
from benchmarks.highest_rate import HighestRate
from benchmarks.prices import Price
from benchmarks.slo_comparison import SloComparison

# GPUs of an MI325X node, of which only whole ones can be had (gpu-mi325x8 of DigitalOcean).
GPUS_PER_NODE = 8


class Worth(BaseModel):
    """Under one SLO. Money is in the price's currency for a million output tokens; None without a price.

    load: requests per second that nodes are reckoned for. saving: the part of the base's nodes that the candidate does
    not need.
    """

    name: str
    price: str | None
    base_cost: Interval | None
    candidate_cost: Interval | None
    load: float
    base_nodes: Count
    candidate_nodes: Count
    saving: Saving


def worth(
    slo: SloComparison, base: ComparedSide, candidate: ComparedSide, price: Price | None, load: float | None
) -> Worth | None:
    """None where a side has no GPUs or no complete answer, or its rate under this SLO is not known with a range."""
    ours, theirs = _capacity(base, slo.base), _capacity(candidate, slo.candidate)
    if ours is None or theirs is None:
        return None
    wanted = theirs.rate if load is None else load
    nodes = [nodes_for(wanted, side.rate, side.nodes) for side in (ours, theirs)]
    return Worth(
        name=slo.name,
        price=str(price) if price else None,
        base_cost=cost_per_million_output_tokens(price.per_gpu_hour, ours) if price else None,
        candidate_cost=cost_per_million_output_tokens(price.per_gpu_hour, theirs) if price else None,
        load=wanted,
        base_nodes=nodes[0],
        candidate_nodes=nodes[1],
        saving=saving(*nodes),
    )


def _capacity(side: ComparedSide, highest: HighestRate) -> Capacity | None:
    gpus = side.runs[-1].target.deployment.gpus
    if not gpus or not side.output_tokens or highest.rate is None or highest.passes is None or highest.fails is None:
        return None
    nodes = math.ceil(gpus / GPUS_PER_NODE)
    return Capacity(highest.rate, highest.passes, highest.fails, gpus, nodes, side.output_tokens)
