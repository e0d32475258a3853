"""What a stack of this repository deploys, as the guards look at it. Findings are said at the stack file's keys."""

from __future__ import annotations

from dataclasses import dataclass

from serving.amounts import amount
from serving.engine import EngineArguments, budget_differences
from serving.guards.located import Located, Path, Place
from serving.guards.read_kubernetes import ray_cluster
from serving.guards.read_serve import applications
from serving.guards.view import NodeFacts, View
from serving.images import Images
from serving.ray_cluster import ray_service
from serving.serve_config import serve_config
from serving.stack import Stack
from serving.stack_files import PROJECT
from serving.versions import platform_versions

_ROLES = {"prefill_config": "prefill", "decode_config": "decode", "llm_configs": "aggregated"}
# Where parts of a pod come from.
_POD_KEYS = {
    "tolerations": "cluster.nodes.tolerations",
    "nodeSelector": "cluster.nodes.nodeSelector",
    "supplementalGroups": "cluster.nodes.renderGroup",
    "privileged": "security.privileged",
    "cpu": "cluster.nodes.engineCpu",
}
# Of a stack whose images are built by `pulumi up`, or given only there. No guard looks at what they are called.
_NO_IMAGES = Images(engine=f"to-be-built@sha256:{'0' * 64}", benchmark=f"to-be-built@sha256:{'0' * 64}")


@dataclass(frozen=True)
class StackOrigin:
    """Knows which key of the stack file a value of what is deployed comes from."""

    name: str
    stack: Stack

    def place(self, path: Path) -> Place:
        return Place(f"stack {self.name}", f"{PROJECT}:{self._key(path)}")

    def _key(self, path: Path) -> str:
        words = [str(part) for part in path]
        if "engine_kwargs" in words:
            return self._engine_key(words)
        if "env_vars" in words or "env" in words:
            variable = self._variable(path)
            return f"cluster.nodes.environment.{variable}" if variable else "cluster.nodes.environment"
        if "num_replicas" in words or "replicas" in words or "deployments" in words:
            return "topology"
        if "accelerator_type" in words:
            return "cluster.nodes.acceleratorType"
        if "model_loading_config" in words:
            return "modelSource"
        if "import_path" in words:
            return "topology"
        if "image" in words:
            return "images.engine"
        for word, key in _POD_KEYS.items():
            if word in words:
                return key
        return "platform" if "args" in words else "cluster.nodes"

    def _engine_key(self, words: list[str]) -> str:
        """Where an argument is set, of the role before for all; where neither, of all."""
        role = next((_ROLES[word] for word in words if word in _ROLES), "all")
        rest = words[words.index("engine_kwargs") + 1 :]
        if not rest or rest[0] == "kv_transfer_config":
            return "platform"
        for place in (role, "all"):
            given = getattr(self.stack.engine, place)
            if rest[0] in given.vllm:
                return ".".join(("engine", place, "vllm", *rest))
            if rest[0] in given.model_fields_set:
                return ".".join(("engine", place, *rest))
        if rest[0] == "load_format" and self.stack.target == "kubernetes":
            return "weights.mode"
        return f"engine.all.{rest[0]}" if rest[0] in EngineArguments.model_fields else f"engine.all.vllm.{rest[0]}"

    def _variable(self, path: Path) -> str | None:
        if "env_vars" in path:
            below = path[path.index("env_vars") + 1 :]
            return str(below[0]) if below else None
        return None


def view_of_stack(stack: Stack, name: str) -> View:
    """The objects that `pulumi up` would make, with what the settings know of the nodes."""
    origin = StackOrigin(name, stack)
    cluster = None
    if stack.target == "kubernetes":
        pictured = stack if stack.images and stack.images.engine else stack.model_copy(update={"images": _NO_IMAGES})
        manifest = ray_service(pictured, name, stack.namespace or name)
        cluster = ray_cluster(Located(manifest, (), origin), "RayService")
    config = Located(serve_config(stack), (), origin)
    made = applications(config, cluster)
    engines = [engine for application in made for engine in application.engines]
    pods = [*([cluster.head] if cluster and cluster.head else []), *(cluster.workers if cluster else [])]
    return View(
        platform=stack.platform,
        versions={k: v for k, v in platform_versions(stack.platform).items() if k != "transfer_module"},
        applications=made,
        engines=engines,
        clusters=[cluster] if cluster else [],
        pods=pods,
        serve=[config],
        node=_nodes(stack),
        model=stack.model_,
        unequal_budgets=budget_differences(stack.topology_, stack.model_, stack.platform_, stack.engine),
    )


def _nodes(stack: Stack) -> NodeFacts:
    if stack.target != "kubernetes":
        return NodeFacts()
    profile = stack.profile
    return NodeFacts(gpus=profile.gpus_per_node, memory=int(amount(profile.engine_memory)))
