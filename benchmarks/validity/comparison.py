"""Do two runs differ in their arrangement only? Everything else that is not equal is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.scenario import Scenario
from benchmarks.validity.finding import Verdict, fault_if, kind, note, ok
from benchmarks.validity.seen import Pair, Side

# docs/explanation/equal-budgets.md says why.
BUDGETS = ("max_num_batched_tokens", "max_num_seqs", "max_model_len", "gpu_memory_utilization")
DTYPES = ("dtype", "kv_cache_dtype", "quantization")
WEIGHTS = ("load_format",)
CACHES = ("enable_prefix_caching", "block_size")
# What PD has besides, and how a replica is spread over its GPUs: the arrangement itself.
ARRANGEMENT = ("kv_transfer_config", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
# What an image has on a side that moves KV, and not on one that moves none.
_MOVES_KV = ("nixl", "rixl", "ucx")
# What of a scenario is not the work of one request: names, bounds (a kind of their own), rates, lengths of phases.
_NOT_SHAPE = (
    "name",
    "description",
    "stacks",
    "slo",
    "also",
    "rates",
    "search",
    "seed",
    "warmup_s",
    "window_s",
    "min_requests",
    "max_requests",
)


@kind("unequal-gpus")
def gpus(pair: Pair) -> Verdict | None:
    """Different numbers or platforms of GPUs on the two sides (on CPU: of engine replicas)."""
    sides = [side.target.deployment for side in (pair.base, pair.candidate)]
    amounts = [
        f"{d.gpus} {d.platform} GPUs" if d.gpus else f"{d.replicas} engine replicas on {d.platform}" for d in sides
    ]
    said = " against ".join(amounts)
    return fault_if(
        amounts[0] != amounts[1], f"{said}" if amounts[0] != amounts[1] else f"both sides have {amounts[0]}"
    )


@kind("unequal-budgets")
def budgets(pair: Pair) -> Verdict | None:
    """Engine limits that differ between any two roles of the two sides: step tokens, sequences, context, GPU memory.
    An engine with other limits is another engine."""
    return _arguments(pair, BUDGETS, "every role of both sides has the same budgets")


@kind("unequal-dtype")
def dtype(pair: Pair) -> Verdict | None:
    """Data types of weights, computation or KV cache that differ."""
    return _arguments(pair, DTYPES, "data types are the same")


@kind("unequal-caches")
def caches(pair: Pair) -> Verdict | None:
    """Prefix caching or KV block size that differ between roles."""
    return _arguments(pair, CACHES, "prefix caching and KV block size are the same")


@kind("unequal-weights")
def weights(pair: Pair) -> Verdict | None:
    """Real weights on one side and dummy ones on the other, by what was deployed or by the engines' arguments."""
    dummy = {side.name: side.target.deployment.dummy_weights for side in (pair.base, pair.candidate)}
    lines = _differing(_roles(pair), WEIGHTS)
    if len(set(dummy.values())) > 1:
        lines.append(", ".join(f"{name} {'dummy' if made_up else 'real'} weights" for name, made_up in dummy.items()))
    return fault_if(lines, "; ".join(lines) or "weights are loaded alike")


@kind("unknown-arguments")
def unknown(pair: Pair) -> Verdict:
    """A side whose engine arguments are not known for each of its roles: whether budgets, data types and caches are
    equal is then not known either."""
    lines = [
        f"{side.name}: no engine argument of {role} is known"
        for side in (pair.base, pair.candidate)
        for role in ("prefill", "decode", "aggregated")
        if getattr(side.target.deployment, role) and not _engine(side).get(role)
    ]
    return fault_if(lines, "; ".join(lines) or "every role's engine arguments are known")


@kind("unequal-arguments")
def arguments(pair: Pair) -> Verdict | None:
    """Other engine arguments that differ: a note, as tuning both sides is legitimate if it is told."""
    named = {*BUDGETS, *DTYPES, *CACHES, *WEIGHTS, *ARRANGEMENT}
    others = {key for values in _roles(pair).values() for key in values} - named
    lines = _differing(_roles(pair), sorted(others))
    return note("; ".join(lines)) if lines else ok("no other engine argument differs")


@kind("unequal-model")
def model(pair: Pair) -> Verdict | None:
    """Different models on the two sides."""
    return _same(pair.base.target.model, pair.candidate.target.model, "model")


@kind("unequal-image")
def image(pair: Pair) -> Verdict:
    """Different versions of vLLM, Ray or what else is in the image, rendered for or found in the engines, or known on
    one side only. NIXL may be on one side: the other moves no KV."""
    lines = [
        *_mappings(pair, "rendered", pair.base.target.versions, pair.candidate.target.versions),
        *_mappings(pair, "found", pair.base.image, pair.candidate.image),
    ]
    return fault_if(lines, "; ".join(dict.fromkeys(lines)) or "both sides run the same versions")


@kind("unequal-scenario")
def scenario(pair: Pair) -> Verdict | None:
    """Different work: lengths, hit rate, turns, arrivals or timeout."""
    base, candidate = _shape(pair.base.scenario), _shape(pair.candidate.scenario)
    lines = [
        f"{key}: {base.get(key)} against {candidate.get(key)}"
        for key in dict.fromkeys([*base, *candidate])
        if base.get(key) != candidate.get(key)
    ]
    return fault_if(lines, "; ".join(lines) or "both sides had the same work")


@kind("unequal-slo")
def slo(pair: Pair) -> Verdict | None:
    """Different bounds: the highest rates under them cannot be compared."""
    base, candidate = (_bounds(side.scenario) for side in (pair.base, pair.candidate))
    return _same(base, candidate, "SLO")


def _arguments(pair: Pair, keys: Sequence[str], equal: str) -> Verdict:
    lines = _differing(_roles(pair), keys)
    return fault_if(lines, "; ".join(lines) or equal)


def _roles(pair: Pair) -> dict[str, Mapping[str, Any]]:
    """The engine arguments of each role of each side, by a name such as `base prefill`."""
    return {
        f"{side.name} {role}": values for side in (pair.base, pair.candidate) for role, values in _engine(side).items()
    }


def _engine(side: Side) -> Mapping[str, Mapping[str, Any]]:
    return side.target.deployment.engine


def _differing(roles: Mapping[str, Mapping[str, Any]], keys: Sequence[str]) -> list[str]:
    """A line for each argument that not all roles have alike. One that is not set is the engine's default."""
    lines: list[str] = []
    for key in keys:
        values = {role: str(arguments.get(key, "default")) for role, arguments in roles.items()}
        if len(set(values.values())) > 1:
            lines.append(f"{key}: " + ", ".join(f"{role} {value}" for role, value in values.items()))
    return lines


def _mappings(pair: Pair, how: str, base: Mapping[str, Any], candidate: Mapping[str, Any]) -> list[str]:
    """A line for each version that is not the same, and for what one side alone has."""
    lines = [
        f"{key} {_text(base[key])} against {_text(candidate[key])}"
        for key in base
        if key in candidate and base[key] != candidate[key]
    ]
    for here, there, lacking in ((base, candidate, pair.candidate), (candidate, base, pair.base)):
        if alone := [key for key in here if key not in there and not key.startswith(_MOVES_KV)]:
            lines.append(f"{', '.join(alone)} {how} on one side, not known of {lacking.name}")
    return lines


def _text(value: object) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list) else str(value)


def _bounds(whole: Scenario) -> str:
    """The bounds of the scenario's own set and of each further one."""
    sets = {"": whole.slo, **{f"{name}: ": bounds for name, bounds in sorted(whole.also.items())}}
    return "; ".join(name + ", ".join(sorted(map(str, bounds))) for name, bounds in sets.items())


def _shape(whole: Scenario) -> dict[str, Any]:
    return {key: value for key, value in whole.model_dump(mode="json").items() if key not in _NOT_SHAPE}


def _same(base: str, candidate: str, what: str) -> Verdict:
    same = base == candidate
    return fault_if(not same, f"the same {what}: {base}" if same else f"{what} {base} against {candidate}")
