"""What the guards look at: engines, applications, pods and nodes, wherever they were read from.

A Ray Serve config, a RayService, a `vllm serve` command and a stack file of this repository say the same things in
different places. Everything here is in vLLM's, Ray's or Kubernetes' own words, and knows where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from packaging.version import InvalidVersion, Version

from serving.guards.located import Located

if TYPE_CHECKING:
    from serving.guards.yaml_files import Duplicate
    from serving.models import Model

T = TypeVar("T")
Role = Literal["prefill", "decode", "aggregated"]
PodKind = Literal["head", "worker", "engine", "other"]
PlatformName = Literal["rocm", "cuda", "cpu"]


@dataclass(frozen=True)
class Pod:
    """A pod template. `node`: the template's spec; `container`: the one with the engine, or the first.

    kind: `head` and `worker` of a Ray cluster, `engine` where vLLM runs without Ray, `other`.
    replicas: how many are asked for, where it is said. environment: of the container, by name: the entry of its list.
    """

    kind: PodKind
    name: str
    template: Located
    node: Located
    container: Located
    environment: Mapping[str, Located]
    group: Located | None = None
    replicas: int | None = None

    def limit(self, resource: str) -> Located | None:
        """A resource of the container: its limit, or where none stands its request."""
        return self.container.at("resources", "limits", resource) or self.container.at(
            "resources", "requests", resource
        )

    @cached_property
    def _resources(self) -> dict[str, Located]:
        found: dict[str, Located] = {}
        for kind in ("requests", "limits"):
            if below := self.container.at("resources", kind):
                found |= dict(below.items())
        return found

    def resources(self) -> dict[str, Located]:
        """Requests of the container, and over them its limits."""
        return dict(self._resources)

    @property
    def host_network(self) -> bool:
        below = self.node.at("hostNetwork")
        return below is not None and below.value is True

    @cached_property
    def gpus(self) -> int:
        """GPUs that the container asks for: of every resource whose name ends in `gpu`, as KubeRay counts them."""
        return sum(value.integer or 0 for name, value in self.resources().items() if name.endswith("gpu"))

    def annotation(self, name: str) -> Located | None:
        return self.template.at("metadata", "annotations", name)


@dataclass(frozen=True)
class Engine:
    """One kind of replica: a `LLMConfig` of Ray Serve LLM, or a `vllm serve` command.

    node: the LLMConfig, or the container. arguments: vLLM's, by the name of the keyword argument. kv: what
    `kv_transfer_config` holds, None without one. environment: what the engine's process gets, by name. replicas: how
    many, where it is said. by_ray: whether Ray Serve LLM starts it.
    """

    role: Role
    node: Located
    arguments: Mapping[str, Located]
    kv: Mapping[str, Located] | None
    environment: Mapping[str, Located]
    by_ray: bool
    replicas: int | None = None
    pod: Pod | None = None

    def argument(self, name: str) -> Located | None:
        return self.arguments.get(name)

    def integer(self, name: str, default: int) -> int:
        """An argument that is a whole number; `default`, vLLM's own, where it is not given or is none."""
        found = self.arguments.get(name)
        return default if found is None or found.integer is None else found.integer

    @cached_property
    def bundles(self) -> Sequence[Located]:
        """What `placement_group_config` lists; `bundle_per_worker` once, which wins over `bundles`."""
        one = self.node.at("placement_group_config", "bundle_per_worker")
        several = self.node.at("placement_group_config", "bundles")
        found = [one] if one is not None else list(several.entries()) if several is not None else []
        return [bundle for bundle in found if isinstance(bundle.value, dict)]

    @property
    def gpus(self) -> int:
        """Ranks of one replica, each of which needs a GPU where the engine is none of a CPU."""
        return self.integer("tensor_parallel_size", 1) * self.integer("pipeline_parallel_size", 1)

    def kv_extra(self, name: str) -> Located | None:
        extra = (self.kv or {}).get("kv_connector_extra_config")
        return extra.at(name) if extra is not None else None

    def variable(self, name: str) -> str | None:
        """A variable's value where it is written down."""
        found = self.environment.get(name)
        if found is None:
            return None
        value = found.at("value") if isinstance(found.value, dict) else found
        return None if value is None or value.value is None else str(value.value)

    @property
    def model(self) -> Located | None:
        """Where the weights come from: a repository or a folder."""
        source = self.node.at("model_loading_config", "model_source") if self.by_ray else None
        named = self.node.at("model_loading_config", "model_id") if self.by_ray else None
        return source or named or self.arguments.get("model")


def without_role(engine: Engine) -> str:
    """The name of an engine's workload without the word for its role."""
    return re.sub(r"prefill(er)?s?|decoder?s?", "", (engine.pod.name if engine.pod else "").lower())


@dataclass(frozen=True)
class Application:
    """An application of Ray Serve LLM. `pd`: built by `build_pd_openai_app`. args: the builder's, where they stand."""

    node: Located
    pd: bool
    args: Located
    engines: Sequence[Engine]

    def engine(self, role: Role) -> Engine | None:
        return next((engine for engine in self.engines if engine.role == role), None)


@dataclass(frozen=True)
class RayClusterView:
    """A Ray cluster that KubeRay makes. service: the RayService's spec, where one owns it. spec: the cluster's."""

    spec: Located
    head: Pod | None
    workers: Sequence[Pod]
    service: Located | None = None


@dataclass(frozen=True)
class NodeFacts:
    """What is known of the nodes that engines run on; None: it is not known. Memory in bytes."""

    gpus: int | None = None
    memory: int | None = None


@dataclass(frozen=True)
class View:
    """Everything that was read from one stack or file, taken together."""

    platform: PlatformName | None
    versions: Mapping[str, str]
    assumed: Sequence[str] = ()  # components whose version is not said in what was read
    applications: Sequence[Application] = ()
    engines: Sequence[Engine] = ()
    clusters: Sequence[RayClusterView] = ()
    pods: Sequence[Pod] = ()
    serve: Sequence[Located] = ()  # whole Serve configs
    node: NodeFacts = field(default_factory=NodeFacts)
    model: Model | None = None
    unequal_budgets: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    duplicates: Sequence[Duplicate] = ()
    queries: Sequence[Located] = ()  # manifests with PromQL: rules, dashboards

    _answers: dict[Callable[[View], Any], Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, ask: Callable[[View], T]) -> T:
        """The answer to a question that several guards have, looked for once."""
        if ask not in self._answers:
            self._answers[ask] = ask(self)
        return self._answers[ask]

    def version(self, component: str) -> Version | None:
        """Of a component that runs there; None where it is not known, or is a commit."""
        try:
            return Version(self.versions[component])
        except (KeyError, InvalidVersion):
            return None

    def pairs(self) -> Iterator[tuple[Engine, Engine]]:
        """Every prefill engine with every decode engine that it serves for."""
        for application in self.applications:
            prefill, decode = application.engine("prefill"), application.engine("decode")
            if prefill and decode:
                yield prefill, decode
        plain: dict[str, list[Engine]] = {"prefill": [], "decode": [], "aggregated": []}
        for engine in self.engines:
            if not engine.by_ray:
                plain[engine.role].append(engine)
        if len(plain["prefill"]) == len(plain["decode"]) == 1:
            yield plain["prefill"][0], plain["decode"][0]
            return
        # Of several deployments in one file those that are called the same but for the role.
        decodes: dict[str, list[Engine]] = {}
        for decode in plain["decode"]:
            decodes.setdefault(without_role(decode), []).append(decode)
        for prefill in plain["prefill"]:
            for decode in decodes.get(without_role(prefill), ()):
                yield prefill, decode

    @cached_property
    def _clusters_of_pods(self) -> dict[int, RayClusterView]:
        return {id(pod): cluster for cluster in self.clusters for pod in cluster.workers}

    def cluster_of(self, engine: Engine) -> RayClusterView | None:
        """The Ray cluster whose worker pods an engine runs in."""
        return self._clusters_of_pods.get(id(engine.pod))

    def moving(self) -> Iterator[Engine]:
        """Engines that send or receive KV."""
        return (engine for engine in self.engines if engine.kv is not None)
