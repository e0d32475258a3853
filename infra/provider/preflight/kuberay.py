"""Whether KubeRay is there, as the stack expects it."""

from typing import Any

from infra.provider.kubernetes_api import Json
from infra.provider.preflight.facts import RAY, Facts
from infra.provider.resource import Properties

# Fields of serving/ray_cluster.py that came into RayService after ray.io/v1 itself. An API server drops what a CRD
# does not know, without a word: no authOptions is a Ray without a token, no upgradeStrategy a second cluster.
_FIELDS = ("upgradeStrategy", "excludeHeadPodFromServeSvc", "rayClusterConfig.authOptions")
_SCHEMA = "io.ray.v1.RayService"
_WATCH = "--watch-namespace"


def lacks(inputs: Properties, facts: Facts) -> list[str]:
    """Definitions and operator, when somebody else installs them; nobody else's operator, when this stack does."""
    operator, home = inputs["rayOperator"], inputs["namespace"]
    if operator["install"] == "chart":
        return [line for other in facts.operators or [] for line in _in_the_way(other, operator, home, facts)]
    if not {"rayservices", "rayclusters"} <= facts.served.get(RAY, set()):
        return [f"KubeRay: the API does not serve rayservices and rayclusters of {RAY}; {_fix(operator)}"]
    found = []
    spec = _spec(facts.ray_schema)
    if missing := [path for path in _FIELDS if spec is not None and not _knows(spec, path)]:
        found.append(
            f"KubeRay: the definition of rayservices.ray.io does not know {', '.join(missing)}, it is of an older "
            f"release; {_fix(operator)}"
        )
    operators = _staying(facts)
    ours = [entry for entry in operators if _looks_after(entry, home)]
    if operators and not ours:
        where = ", ".join(f"{_where(entry)} ({', '.join(_watched(entry))})" for entry in operators)
        found.append(f"KubeRay: no operator looks after namespace {home}, only those in {where}; {_fix(operator)}")
    if ours and not any(_version(entry) in (operator["version"], "") for entry in ours):
        there = ", ".join(f"{_version(entry)} in namespace {_where(entry)}" for entry in ours)
        found.append(f"KubeRay: the operator is {there}, this stack needs {operator['version']}; {_fix(operator)}")
    return found


def notes(inputs: Properties, facts: Facts) -> list[str]:
    """An operator that cannot be seen may run elsewhere, or be hidden by missing permissions."""
    if inputs["rayOperator"]["install"] == "chart" or _staying(facts):
        return []
    why = "there is none with its usual label"
    if facts.operators is None:
        why = f"{facts.user} may not list deployments"
    elif facts.operators:
        why = f"the one in namespace {facts.own_operator} is this stack's, which the update removes"
    return [f"KubeRay: its operator was not seen ({why}); if it runs elsewhere all is well, else nothing will start"]


def _staying(facts: Facts) -> list[Json]:
    """The operators that were seen, less this stack's own: an update to `preinstalled` removes that one."""
    return [entry for entry in facts.operators or [] if _where(entry) != facts.own_operator]


def _in_the_way(other: Json, operator: dict[str, Any], home: str, facts: Facts) -> list[str]:
    """Nothing about this stack's own operator, and one that looks after other namespaces from another one."""
    where = _where(other)
    if where == facts.own_operator:
        return []
    who = f"KubeRay: an operator runs in namespace {where} already (version {_version(other) or 'unknown'})"
    if _looks_after(other, home):
        return [f"{who}, and two would fight over the RayService; set rayOperator.install: preinstalled"]
    return [f"{who}, for others; set rayOperator.namespace to another one"] if where == operator["namespace"] else []


def _fix(operator: dict[str, Any]) -> str:
    if operator["stack"]:
        return f"run pulumi up in stack {operator['stack']}, which owns it"
    return f"install KubeRay {operator['version']}, or set rayOperator.install: chart"


def _spec(schema: Json | None) -> Json | None:
    """The schema of a RayService's spec; None where it cannot be seen."""
    service = ((schema or {}).get("components") or {}).get("schemas", {}).get(_SCHEMA)
    return service["properties"]["spec"] if service else None


def _knows(schema: Json, path: str) -> bool:
    for name in path.split("."):
        schema = (schema.get("properties") or {}).get(name)  # type: ignore[assignment]
        if schema is None:
            return False
    return True


def _where(deployment: Json) -> str:
    return deployment["metadata"]["namespace"]


def _looks_after(deployment: Json, namespace: str) -> bool:
    return not _watched(deployment) or namespace in _watched(deployment)


def _watched(deployment: Json) -> list[str]:
    """The namespaces an operator is limited to; empty: all. The chart writes flag and value as two arguments."""
    words: list[str] = _container(deployment).get("args") or []
    arguments = [part for word in words for part in word.split("=")]
    if _WATCH not in arguments[:-1]:
        return []
    return arguments[arguments.index(_WATCH) + 1].split(",")


def _container(deployment: Json) -> Json:
    return deployment["spec"]["template"]["spec"]["containers"][0]


def _version(deployment: Json) -> str:
    """The tag of the operator's image, less the `v`; empty for an image by digest."""
    image = _container(deployment)["image"].partition("@")[0]
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag.removeprefix("v")
