"""In which order stacks are measured, and what must not differ between them. Values in, values out."""

from collections.abc import Mapping, Sequence

from benchmarks.errors import BenchmarkError
from serving.cluster import DoksCluster, LocalCluster, NodePoolStack, StackCluster
from serving.stack import Stack

OWN_NODES = (
    "every stack brings nodes of its own, so that a comparison is also one of nodes; cluster.provider: stack puts all "
    "on those of one stack"
)
Settings = Stack | NodePoolStack


def visits(stacks: Sequence[str], repeats: int) -> list[tuple[int, str]]:
    """(repeat, stack) in the order in which they are measured, repeats counted from 1.

    Every second repeat goes through the stacks backwards: what drifts slowly, such as a machine that gets warmer, then
    hits each of them as often early as late. Raises BenchmarkError.
    """
    if not stacks:
        raise BenchmarkError('no stack is named; name them with STACKS="pd-2p1d agg-3"')
    for name in stacks:
        if stacks.count(name) > 1:
            raise BenchmarkError(f"{name} is named twice in STACKS; REPEATS=2 measures each stack twice")
    if repeats < 1:
        raise BenchmarkError(f"REPEATS={repeats}: give at least 1")
    forth, back = list(stacks), list(reversed(stacks))
    return [(repeat, name) for repeat in range(1, repeats + 1) for name in (forth if repeat % 2 else back)]


def check_comparable(stacks: Mapping[str, Settings], scenario: str | None, unequal_gpus: bool) -> list[str]:
    """Whether runs of these stacks say something about their difference; what a reader of them should know.

    scenario: the one that is run instead of the stacks' own. Raises BenchmarkError.
    """
    serving: dict[str, Stack] = {}
    for name, settings in stacks.items():
        if isinstance(settings, NodePoolStack):
            raise BenchmarkError(f"{name} owns nodes and serves nothing: a campaign leaves it as it is; take it out")
        serving[name] = settings
    _alike({name: stack.model for name, stack in serving.items()}, "serves", "choose stacks of one model")
    _alike({name: stack.platform for name, stack in serving.items()}, "runs on", "choose stacks of one platform")
    if scenario is None:
        own = {name: stack.scenario for name, stack in serving.items()}
        _alike(own, "is measured with", "name one for all with SCENARIO=")
    if not unequal_gpus:
        _alike(
            {name: _size(stack) for name, stack in serving.items()}, "has", "UNEQUAL_GPUS=1 measures them all the same"
        )
    _alike({name: _nodes(stack) for name, stack in serving.items()}, "is on", "put all on the same nodes")
    own_nodes = len(serving) > 1 and all(isinstance(stack.cluster, DoksCluster) for stack in serving.values())
    return [OWN_NODES] if own_nodes else []


def _alike(values: Mapping[str, str], verb: str, fix: str) -> None:
    first, *others = values.items()
    for other in others:
        if other[1] != first[1]:
            raise BenchmarkError(f"{first[0]} {verb} {first[1]}, {other[0]} {verb} {other[1]}; {fix}")


def _size(stack: Stack) -> str:
    return f"{stack.gpus} GPUs" if stack.gpus else f"{stack.topology_.replicas} replicas"


def _nodes(stack: Stack) -> str:
    """Where a stack runs, in words that are equal where the nodes are."""
    cluster = stack.cluster
    if cluster is None:
        return f"the Ray cluster at {stack.ray.address if stack.ray else 'nowhere'}"
    if isinstance(cluster, LocalCluster):
        return "this machine"
    if isinstance(cluster, DoksCluster):
        return "nodes of its own"
    if isinstance(cluster, StackCluster):
        return f"the nodes of {cluster.stack}"
    return (
        f"the cluster of {cluster.kubeconfig or 'the default kubeconfig'}, context {cluster.context or 'the current'}"
    )
