"""How many replicas there are, and how many requests each may have."""

from __future__ import annotations

from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.serve_options import Deployment, deployments, is_true
from serving.guards.view import View

# Ray Serve LLM's target_ongoing_requests where an LLMConfig does not give one (llm/_internal/serve/constants.py).
_NO_TARGET = 1_000_000_000
_ANSWERS = ("decode", "aggregated")  # roles whose replicas send answers


def _given(place: Located | None, *keys: str) -> Located | None:
    """What stands there, unless it is null."""
    found = place.at(*keys) if place is not None else None
    return found if found is not None and found.value is not None else None


def autoscaling(deployment: Deployment) -> tuple[Located, bool] | None:
    """The autoscaling settings that win, and whether Ray Serve LLM's own target stands below them.

    None where they are not written down, or lose against a number of replicas.
    """
    entry, config = deployment.entry, deployment.config
    if entry is not None and "autoscaling_config" in entry:
        found = _given(entry, "autoscaling_config")
        return None if found is None else (found, False)
    found = _given(config, "autoscaling_config")
    if config is None or found is None:
        return None
    replicas = config.at("num_replicas")
    if replicas is None:
        return found, True
    return (found, False) if replicas.value == "auto" else None


def scales(settings: Located) -> bool:
    """Whether there is room between the fewest and the most replicas: both are 1 by default."""
    least, most = settings.at("min_replicas"), settings.at("max_replicas")
    fewest = 1 if least is None or least.integer is None else least.integer
    return most is not None and most.integer is not None and most.integer > max(1, fewest)


@guard(
    "autoscaling-never-triggers",
    "error",
    what="Autoscaling whose target no replica ever reaches",
    silently="Ray Serve LLM's own target is a thousand million requests a replica: the fewest replicas run, however "
    "many requests wait",
    fix="give `target_ongoing_requests`, near what a replica serves within its SLO",
    source="ray 2.55 to 2.60 llm/_internal/serve/core/server/builder.py: DEFAULT_DEPLOYMENT_OPTIONS; "
    "llm/_internal/serve/constants.py: DEFAULT_MAX_TARGET_ONGOING_REQUESTS (run)",
    holds={"ray": ">=2.55,<2.61"},
)
def autoscaling_never_triggers(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        found = autoscaling(deployment)
        if found is None or not scales(found[0]) or _given(found[0], "policy") is not None:
            continue
        if deployment.engine and deployment.engine.variable("RAY_SERVE_LLM_DEFAULT_MAX_TARGET_ONGOING_REQUESTS"):
            continue
        settings, own_default = found
        engine = deployment.engine
        if engine is not None and engine.role != "aggregated" and engine.integer("data_parallel_size", 1) > 1:
            own_default = False  # data_parallel/dp_server.py puts Serve's own target of 2 in its place
        target = settings.at("target_ongoing_requests")
        if target is None and own_default:
            yield settings, "no target_ongoing_requests"
        elif target is not None and (target.number or 0) >= _NO_TARGET:
            yield target, f"target_ongoing_requests {target.value}"


@guard(
    "autoscaling-from-two-requests",
    "warning",
    what="Autoscaling with Serve's default target of 2 requests a replica, for an engine that batches hundreds",
    silently="a third request already asks for another replica, up to `max_replicas` (100 with `auto`), and every "
    "one takes GPUs and loads the weights",
    fix="give `target_ongoing_requests`, near what a replica serves within its SLO",
    source="ray 2.55 serve/_private/constants.py: DEFAULT_TARGET_ONGOING_REQUESTS; serve/config.py: "
    "AutoscalingConfig.default; llm/_internal/common/dict_utils.py",
    holds={"ray": ">=2.55,<2.61"},
)
def autoscaling_from_two_requests(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        if deployment.engine is None or deployment.engine.integer("data_parallel_size", 1) > 1:
            continue
        auto = deployment.option("num_replicas")
        found = autoscaling(deployment)
        if found is None:
            if auto is not None and auto.value == "auto":
                yield auto, "num_replicas: auto"
        elif (
            not found[1]
            and scales(found[0])
            and not {"target_ongoing_requests", "policy"} & {key for key, _ in found[0].items()}
        ):
            yield found[0], "no target_ongoing_requests"


@guard(
    "autoscaling-beside-replicas",
    "error",
    what="A number of replicas and autoscaling for one deployment",
    silently="LLMConfig takes both, and only the application's build fails: a RayService stays at its old one",
    fix="keep one of `num_replicas` and `autoscaling_config`",
    source="ray 2.55 serve/api.py: `Manually setting num_replicas is not allowed`; serve/schema.py: DeploymentSchema",
)
def autoscaling_beside_replicas(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        for place in (deployment.config, deployment.entry):
            count, settings = _given(place, "num_replicas"), _given(place, "autoscaling_config")
            if count is not None and count.value != "auto" and settings is not None:
                yield count, f"num_replicas: {count.value}, and autoscaling_config"


@guard(
    "replicas-overruled",
    "error",
    what="`num_replicas` under `deployments` for a deployment that autoscales because its own config has no number",
    silently="Ray Serve LLM turns autoscaling on where a config gives no `num_replicas`, and that wins: its "
    "fewest replicas run, one by default, and not the number that is written",
    fix="write `num_replicas: 1` in the LLMConfig's `deployment_config` (or `ingress_deployment_config`) too, or "
    "`autoscaling_config: null` in the entry",
    source="ray 2.55 to 2.60 llm/_internal/common/dict_utils.py; serve/_private/application_state.py: "
    "override_deployment_info keeps autoscaling_config (run); serve/_private/deployment_state.py:3316",
    holds={"ray": ">=2.55,<2.61"},
)
def replicas_overruled(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        entry, config, engine = deployment.entry, deployment.config, deployment.engine
        if entry is None or "autoscaling_config" in entry or (config is not None and "num_replicas" in config):
            continue
        if engine is not None and engine.integer("data_parallel_size", 1) > 1:
            continue  # its builder sets a number of its own
        count, settings = _given(entry, "num_replicas"), _given(config, "autoscaling_config")
        if count is not None and count.integer is not None and (count.integer != 1 or settings is not None):
            yield count, f"num_replicas: {count.value} of {entry.value.get('name')}"


@guard(
    "batch-never-full",
    "warning",
    what="Fewer requests allowed into a replica than its engine may batch",
    silently="requests wait in Ray's queue while `max_num_seqs` is never reached: the GPU has room, and TTFT grows",
    fix="raise `max_ongoing_requests` to `max_num_seqs` or above, or lower `max_num_seqs`",
    source="ray 2.55 serve/api.py: max_ongoing_requests; vllm 0.18 engine/arg_utils.py: max_num_seqs",
)
def batch_never_full(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        engine = deployment.engine
        if engine is None or engine.role not in _ANSWERS:
            continue
        allowed, batch = deployment.option("max_ongoing_requests"), engine.argument("max_num_seqs")
        if allowed is None or batch is None or allowed.integer is None or batch.integer is None:
            continue
        if 0 < allowed.integer < batch.integer:
            yield allowed, f"max_ongoing_requests {allowed.value}, max_num_seqs {batch.value}"


@guard(
    "runtime-env-replaced",
    "error",
    what="`ray_actor_options` under `deployments` for an engine whose LLMConfig has a `runtime_env`",
    silently="the entry's options replace all of those that the LLMConfig made, its variables among them: replicas "
    "start without UCX_TLS, NIXL and NCCL settings",
    fix="write the options in the LLMConfig's `deployment_config.ray_actor_options`, or repeat the variables in the "
    "entry",
    source="ray 2.55 to 2.60 serve/_private/application_state.py: override_deployment_info (run)",
    holds={"ray": ">=2.55,<2.61"},
)
def runtime_env_replaced(view: View) -> Iterator[Found]:
    for deployment in deployments(view):
        if deployment.engine is None or deployment.entry is None:
            continue
        options = _given(deployment.entry, "ray_actor_options")
        variables = deployment.engine.node.at("runtime_env", "env_vars")
        if options is None or variables is None:
            continue
        # Those of the application are put beneath (override_runtime_envs_except_env_vars).
        own = [app.node for app in view.applications if deployment.engine in app.engines]
        kept = [place.at("runtime_env", "env_vars") for place in (options, *own)]
        lost = [name for name, _ in variables.items() if not any(one is not None and name in one for one in kept)]
        if lost and not is_true(deployment.engine.node.at("use_cpu")):
            yield options, f"lost: {', '.join(lost)}"
