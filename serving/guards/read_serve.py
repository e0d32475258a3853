"""Applications of Ray Serve LLM out of a Serve config (`serve deploy`, `serveConfigV2`, an Anyscale service)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from serving.guards.located import Located
from serving.guards.view import Application, Engine, Pod, RayClusterView, Role

_PD, _AGGREGATED = "ray.serve.llm:build_pd_openai_app", "ray.serve.llm:build_openai_app"
# What builds applications in ray.serve.llm (2.55 to 2.60, serve/llm/__init__.py). The last is not read any further.
BUILDERS = (_PD, _AGGREGATED, "ray.serve.llm:build_dp_openai_app")


def is_serve_config(document: Located) -> bool:
    """Whether a document is a Serve config: it has applications, and is no Kubernetes object."""
    return document.at("applications") is not None and document.at("kind") is None


def builder(path: Located | None) -> str:
    """An import path with its colon, for which a dot may stand."""
    text = path.text or "" if path is not None else ""
    return text if ":" in text else ":".join(text.rsplit(".", 1))


def applications(config: Located, cluster: RayClusterView | None = None) -> list[Application]:
    """Those of Ray Serve LLM; others are none of ours. `cluster`: where they run, if that is known."""
    listed = config.at("applications")
    found = [application(node, cluster) for node in listed.entries()] if listed else []
    return [one for one in found if one is not None]


def application(node: Located, cluster: RayClusterView | None) -> Application | None:
    path, args = builder(node.at("import_path")), node.at("args")
    if args is None:
        return None
    given: list[tuple[Role, Located | None]]
    if path == _PD:
        given = [("prefill", args.at("prefill_config")), ("decode", args.at("decode_config"))]
    elif path == _AGGREGATED:
        configs = args.at("llm_configs")
        given = [("aggregated", config) for config in configs.entries()] if configs is not None else []
    else:
        return None
    counts = _counts(node)
    shared = _variables(node.at("runtime_env", "env_vars"))
    engines = [
        _engine(role, config, shared, counts, cluster)
        for role, config in given
        if config and isinstance(config.value, dict)
    ]
    return Application(node, path == _PD, args, engines)


def _engine(
    role: Role,
    config: Located,
    shared: Mapping[str, Located],
    counts: Mapping[str, int],
    cluster: RayClusterView | None,
) -> Engine:
    arguments = config.at("engine_kwargs")
    named = dict(arguments.items()) if arguments else {}
    kv = named.get("kv_transfer_config")
    pod = _where(cluster, config)
    environment = {**(pod.environment if pod else {}), **shared, **_variables(config.at("runtime_env", "env_vars"))}
    engine = Engine(
        role, config, named, dict(kv.items()) if kv and isinstance(kv.value, dict) else None, environment, True
    )
    count = counts.get(deployment_name(engine))
    if count is None:
        asked = config.at("deployment_config", "num_replicas")
        count = asked.integer if asked else None
    return replace(engine, replicas=count, pod=pod)


def deployment_name(engine: Engine) -> str:
    """The name that Ray Serve LLM gives the deployment (2.55 to 2.60, core/server/builder.py)."""
    prefix = {"prefill": "Prefill", "decode": "Decode", "aggregated": "LLMServer"}[engine.role]
    model = engine.node.at("model_loading_config", "model_id")
    return f"{prefix}:{str(model.value if model else '').replace('/', '--').replace('.', '_')}"


def _counts(node: Located) -> dict[str, int]:
    """Replica counts under `deployments`, which win over those of the LLMConfig."""
    found: dict[str, int] = {}
    listed = node.at("deployments")
    for deployment in listed.entries() if listed else ():
        name, count = deployment.at("name"), deployment.at("num_replicas")
        if name is not None and count is not None and count.integer is not None:
            found[str(name.value)] = count.integer
    return found


def _variables(node: Located | None) -> dict[str, Located]:
    return dict(node.items()) if node else {}


def _where(cluster: RayClusterView | None, config: Located) -> Pod | None:
    """The worker group that a replica runs in: the first with GPUs, unless the config says that it needs none."""
    if cluster is None or not cluster.workers:
        return None
    cpu = config.at("use_cpu")
    wants = not (cpu is not None and cpu.value is True)
    return next((pod for pod in cluster.workers if bool(pod.gpus) == wants), cluster.workers[0])
