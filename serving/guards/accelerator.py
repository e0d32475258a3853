"""On what an engine runs: accelerator types, and engines of a CPU that nobody wanted."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from serving.guards.guard import Found, guard
from serving.guards.near_names import meant
from serving.guards.serve_options import GPU_TYPES_OF_2_55, by_ray, is_true
from serving.guards.view import View

# Ray 2.55, util/accelerators/accelerators.py; A10 is taken for A10G.
_TYPES = (
    GPU_TYPES_OF_2_55
    | frozenset({"B200", "B300", "Intel-GPU-Max-1550", "Intel-GPU-Max-1100", "Intel-GAUDI", "aws-neuron-core"})
    | {f"AMD-Instinct-{name}" for name in ("MI100", "MI210", "MI250X", "MI250X-MI250", "MI300A", "MI300X-OAM")}
    | {f"AMD-Instinct-{name}" for name in ("MI300X-HF", "MI308X", "MI325X-OAM", "MI350X-OAM", "MI355X-OAM")}
    | {"AMD-Radeon-R9-200-HD-7900", "AMD-Radeon-HD-7900", "Ascend910B", "Ascend910B4", "MXC500", "MXC550"}
    | {f"TPU-{name}" for name in ("V2", "V3", "V4", "V5P", "V5LITEPOD", "V6E", "V7X")}
)
# The same file in 2.56, 2.57, 2.58 and 2.59; 2.60 has no other.
_LATER = {
    "2.56": {"FURIOSA_RNGD"},
    "2.57": {"RTX-PRO-6000"},
    "2.58": {"GB200", "GB300", "Apple-Silicon", "M1", "M1-Pro", "M1-Max", "M1-Ultra", "M2", "M2-Pro", "M2-Max"}
    | {"M2-Ultra", "M3", "M3-Pro", "M3-Max"},
    "2.59": {"MOBILINT_ARIES", "MOBILINT_REGULUS"},
}
_NO_GPUS = ("TPU", "HPU", "NPU", "neuron_cores")  # Ray's resources of other accelerators, where those are meant
# Types that LLMConfig takes and no node announces by itself: nodes with MI308X call themselves AMD-Instinct-MI308X-OAM
# (ray 2.55 _private/accelerators/amd_gpu.py), and the two of A100 are for labels that are added by hand
# (util/accelerators/accelerators.py).
_NOT_ANNOUNCED = ("AMD-Instinct-MI308X", "A100-40G", "A100-80G")


@guard(
    "engine-on-cpu",
    "error",
    what="An accelerator type that Ray does not know as a GPU, and no bundle that asks for one",
    silently="Ray builds an engine of a CPU on any node, with executor `mp`; it starts, and answers slowly or not",
    fix="add `placement_group_config: {bundle_per_worker: {CPU: 1, GPU: 1}}` to the LLMConfig, or `use_cpu: false`",
    source="ray 2.55 llm/_internal/serve/engines/vllm/vllm_models.py:258-297 (2.56 asks for GPUs); "
    "ray#62139, ray#62276",
    holds={"ray": ">=2.55,<2.56"},
)
def engine_on_cpu(view: View) -> Iterator[Found]:
    for engine in view.engines:
        named = engine.node.at("accelerator_type")
        if not engine.by_ray or named is None or named.text not in _TYPES or named.text in GPU_TYPES_OF_2_55:
            continue  # of types that there are not accelerator-type-unknown speaks
        if any(key in _NO_GPUS for bundle in engine.bundles for key, _ in bundle.items()):
            continue
        said = engine.node.at("use_cpu")
        gpus = any((bundle.at("GPU") or bundle).number for bundle in engine.bundles if "GPU" in bundle)
        if not gpus and not (said is not None and isinstance(said.value, bool)):
            yield named, f"{named.text} without a bundle that has a GPU"


@guard(
    "bundles-without-gpu",
    "error",
    what="An accelerator type of GPUs, and a placement group whose bundles have none",
    silently="Ray takes the bundles' word and builds an engine of a CPU, with executor `mp` and on any node",
    fix="write `bundle_per_worker: {CPU: 1, GPU: 1}`; where a CPU is meant, leave `accelerator_type` out",
    source="ray 2.55 llm/_internal/serve/engines/vllm/vllm_models.py: use_gpu (2.56 refuses it)",
    holds={"ray": ">=2.55,<2.56"},
)
def bundles_without_gpu(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        named, said = engine.node.at("accelerator_type"), engine.node.at("use_cpu")
        if named is None or named.text not in GPU_TYPES_OF_2_55 or (said is not None and isinstance(said.value, bool)):
            continue  # of other types engine-on-cpu speaks
        asked = engine.bundles
        if asked and not any("GPU" in bundle for bundle in asked):
            yield asked[0], f"{named.text}, and bundles of {', '.join(sorted({key for key, _ in asked[0].items()}))}"


@guard(
    "accelerator-type-unknown",
    "error",
    what="An accelerator type that this Ray does not have",
    silently="the application does not build (`Unsupported accelerator type`), and a RayService stays at its old one",
    fix="write the type as Ray's util/accelerators/accelerators.py has it, as AMD-Instinct-MI325X-OAM",
    source="ray 2.55 to 2.60 llm/_internal/serve/core/configs/llm_config.py: validate_accelerator_type",
    holds={"ray": ">=2.55,<2.61"},
)
def accelerator_type_unknown(view: View) -> Iterator[Found]:
    version = view.version("ray")
    known = set(_TYPES)
    for since, names in _LATER.items():
        if version is None or version >= Version(since):
            known |= names
    for engine in by_ray(view):
        named = engine.node.at("accelerator_type")
        if named is not None and named.text is not None and named.text not in known:
            yield named, f"{named.text}{meant(named.text, known)}"


@guard(
    "accelerator-type-not-announced",
    "warning",
    what="An accelerator type that no node announces by itself",
    silently="Ray puts it into every bundle, no node has it, and replicas wait for placement without an error",
    fix="leave `accelerator_type` out and ask for GPUs in the bundles, or announce it in the worker group's "
    "`rayStartParams.resources`",
    source="ray 2.55 _private/accelerators/amd_gpu.py (0x74a2), util/accelerators/accelerators.py (A100-40G, A100-80G)",
    holds={"ray": ">=2.55,<2.61"},
)
def accelerator_type_not_announced(view: View) -> Iterator[Found]:
    for engine in by_ray(view):
        named = engine.node.at("accelerator_type")
        if named is None or named.text not in _NOT_ANNOUNCED or is_true(engine.node.at("use_cpu")):
            continue
        groups = [pod.group for cluster in view.clusters for pod in cluster.workers if pod.group is not None]
        said = [group.at("rayStartParams", "resources") for group in groups]
        if not any(resources is not None and str(named.text) in str(resources.value) for resources in said):
            yield named, str(named.text)
