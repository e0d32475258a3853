"""Data parallelism under Ray Serve LLM, which counts replicas in two ways."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.read_serve import deployment_name
from serving.guards.view import Application, Engine, View

# A node has eight GPUs: as many groups as ranks is then eight groups of eight.
_MANY = 8


def _parallel(view: View) -> Iterator[tuple[Application, Engine, int]]:
    """Engines of PD applications whose ranks Ray starts as replicas. `build_openai_app` leaves them to vLLM."""
    for application in view.applications:
        for engine in application.engines if application.pd else ():
            size = engine.integer("data_parallel_size", 1)
            if size > 1:
                yield application, engine, size


@guard(
    "data-parallel-override",
    "error",
    what="num_replicas under `deployments` that is no multiple of data_parallel_size",
    silently="in the LLMConfig it counts groups, here it counts ranks: Serve refuses it where it deploys, not before",
    fix="write data_parallel_size x the number of groups, or set num_replicas in deployment_config",
    source="ray 2.55 data_parallel/dp_server.py:246-260, serve/_private/config.py:281-289, application_state.py:1873",
    holds={"ray": ">=2.55,<2.61"},
)
def data_parallel_override(view: View) -> Iterator[Found]:
    for application, engine, size in _parallel(view):
        listed = application.node.at("deployments")
        if engine.node.at("deployment_config", "autoscaling_config") is not None:
            continue  # then Serve does not look
        for deployment in listed.entries() if listed is not None else ():
            name, count = deployment.at("name"), deployment.at("num_replicas")
            if name is None or name.value != deployment_name(engine) or count is None or count.integer is None:
                continue
            if count.integer % size:
                yield count, f"{count.integer} replicas, groups of {size}"


@guard(
    "data-parallel-replicas",
    "warning",
    what="num_replicas that looks like a number of ranks, where Ray counts groups of them",
    silently="Ray multiplies it by data_parallel_size, warns once, and waits for GPUs that the cluster does not have",
    fix="write the number of groups: 1 for one group of data_parallel_size ranks",
    source="ray 2.55 and 2.60 data_parallel/dp_server.py get_deployment_options",
    holds={"ray": ">=2.55,<2.61"},
)
def data_parallel_replicas(view: View) -> Iterator[Found]:
    for application, engine, size in _parallel(view):
        groups = engine.node.at("deployment_config", "num_replicas")
        if groups is None or groups.integer is None or groups.integer < size or _overridden(application, engine):
            continue
        needed, there = groups.integer * size * engine.gpus, _gpus(view)
        if groups.integer == size >= _MANY or (there is not None and needed > there):
            yield groups, f"{groups.integer} groups of {size} ranks: {needed} GPUs"


def _overridden(application: Application, engine: Engine) -> bool:
    listed = application.node.at("deployments")
    names = [deployment.at("name") for deployment in listed.entries()] if listed is not None else []
    return any(isinstance(name, Located) and name.value == deployment_name(engine) for name in names)


def _gpus(view: View) -> int | None:
    """GPUs of the one Ray cluster, where the number of its pods is said."""
    if len(view.clusters) != 1 or not view.clusters[0].workers:
        return None
    counts = [pod.gpus * pod.replicas if pod.replicas is not None else None for pod in view.clusters[0].workers]
    return None if None in counts else sum(count or 0 for count in counts)
