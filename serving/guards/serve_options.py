"""Where the options of a deployment of Ray Serve LLM stand, and which of two places wins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from packaging.version import Version

from serving.guards.located import Located
from serving.guards.read_serve import deployment_name
from serving.guards.view import Application, Engine, View

# Ray takes them for GPUs in 2.55 (llm/_internal/serve/engines/vllm/vllm_models.py). Any other type, AMD's and
# Blackwell's among them, makes it build the engine of a CPU where no bundle says otherwise.
GPU_TYPES_OF_2_55 = frozenset(
    {"V100", "P100", "T4", "P4", "K80", "A10", "A10G", "L4", "L40S", "A100", "H100", "H200", "H20"}
    | {"A100-40G", "A100-80G"}
)
INGRESS = "OpenAiIngress"  # the deployment in front of the engines: the name of its class


@dataclass(frozen=True)
class Deployment:
    """An engine or the ingress. config: its options in the application's args; entry: its entry under `deployments`,
    whose options replace those of config one by one. engine: None for the ingress."""

    config: Located | None
    entry: Located | None
    engine: Engine | None
    at: Located

    def option(self, *keys: str) -> Located | None:
        """The option that wins."""
        for place in (self.entry, self.config):
            if place is not None and (found := place.at(keys[0])) is not None:
                return found.at(*keys[1:]) if len(keys) > 1 else found
        return None


def deployments(view: View) -> Sequence[Deployment]:
    """Every engine of Ray Serve LLM, and every ingress."""
    return view.once(_deployments)


def _deployments(view: View) -> list[Deployment]:
    found: list[Deployment] = []
    for application in view.applications:
        for engine in application.engines:
            found.append(of_engine(application, engine))
        options = application.args.at("ingress_deployment_config")
        found.append(Deployment(options, _entry(application, INGRESS), None, application.args))
    return found


def of_engine(application: Application, engine: Engine) -> Deployment:
    """A deployment with the place of its entry."""
    entry = _entry(application, engine_deployment_name(engine))
    return Deployment(engine.node.at("deployment_config"), entry, engine, engine.node)


def engine_deployment_name(engine: Engine) -> str:
    """What Ray Serve LLM calls the deployment, by its own name where it has one."""
    given = engine.node.at("deployment_config", "name")
    name = deployment_name(engine)
    return f"{name.partition(':')[0]}:{given.text}" if given is not None and given.text else name


def _entry(application: Application, name: str) -> Located | None:
    listed = application.node.at("deployments")
    for entry in listed.entries() if listed else ():
        named = entry.at("name")
        if named is not None and named.value == name:
            return entry
    return None


def by_ray(view: View) -> Iterator[Engine]:
    return (engine for engine in view.engines if engine.by_ray)


def is_true(value: Located | None) -> bool:
    return value is not None and value.value is True


def older(view: View, component: str, version: str) -> bool:
    """Whether it is certain that a version before this one runs there."""
    found = view.version(component)
    return found is not None and found < Version(version)


def uses_gpus(view: View, engine: Engine) -> bool:
    """Whether Ray Serve LLM certainly builds this engine for GPUs: what it asks, in its order."""
    said, kind = engine.node.at("use_cpu"), engine.node.at("accelerator_config", "kind")
    if said is not None and isinstance(said.value, bool):
        return not said.value
    if kind is not None:
        return kind.value == "gpu"
    if engine.bundles:
        return any((gpus := bundle.at("GPU")) and (gpus.number or 0) > 0 for bundle in engine.bundles)
    named = engine.node.at("accelerator_type")
    if named is None or named.value is None:
        return True
    if older(view, "ray", "2.56"):
        return named.text in GPU_TYPES_OF_2_55
    return named.text is not None and not named.text.startswith("TPU")  # 2.56: everything that is no TPU
