"""The Ray Serve config of a stack: the same builder for every platform and for prefill/decode and aggregated alike."""

from copy import deepcopy
from typing import Any

from serving.engine import engine_arguments
from serving.stack import Stack
from serving.topology import Role
from serving.weights import weights_volume

APPLICATION = "llm"
REPLICA_CALLBACK = "serving.replica.callback.ReplicaCallback"
# Ports of the NIXL side channel: replica i of a role takes its role's base + i x tensor_parallel_size, so that replicas
# on one node never meet. Below Linux's ephemeral range (32768-60999), from which anything may be handed a port.
_SIDE_CHANNEL_PORT_BASE = 20000
_DECODE_PORTS_AFTER = 100
# Ingress processes per engine replica. The reference post ran 12 for 3 nodes and 16 for 4; one process on a CPU.
_INGRESS_PER_REPLICA = 4


def role_arguments(stack: Stack, role: Role) -> dict[str, Any]:
    """vLLM's arguments of one role in this stack. What the stack file says wins over what the weights need."""
    weights = weights_volume(stack).engine_arguments if stack.target == "kubernetes" else {}
    return weights | engine_arguments(role, stack.model_, stack.platform_, stack.engine)


def llm_config(stack: Stack, role: Role) -> dict[str, Any]:
    """`ray.serve.llm.LLMConfig` of one role, as a dict. The replica count is not in it: see serve_config."""
    platform, model = stack.platform_, stack.model_
    ports = stack.local_ports
    port_base = ports.side_channel if ports else _SIDE_CHANNEL_PORT_BASE
    source = weights_volume(stack).model_source if stack.target == "kubernetes" else stack.model_source
    return {
        "model_loading_config": {"model_id": model.name, "model_source": source},
        **deepcopy(platform.resources),
        # Ray puts the type into every bundle: a node of another type never gets a replica.
        **({"accelerator_type": stack.accelerator_type} if stack.accelerator_type else {}),
        "engine_kwargs": role_arguments(stack, role),
        "runtime_env": {"env_vars": stack.environment},
        # The Batcher otherwise holds every first token back for a full 50 ms (ray#59681).
        "experimental_configs": {"stream_batching_interval_ms": 0},
        # A number here, even though `deployments` overrides it, keeps Ray Serve LLM from turning autoscaling on.
        "deployment_config": {"num_replicas": 1},
        "callback_config": {
            "callback_class": REPLICA_CALLBACK,
            "callback_kwargs": {
                "side_channel_port_base": port_base + (_DECODE_PORTS_AFTER if role == "decode" else 0),
                # One core per CPU replica, prefill and decode beside each other.
                **({"first_core": 1 if role == "decode" else 0} if platform.name == "cpu" else {}),
            },
        },
    }


def application(stack: Stack) -> dict[str, Any]:
    """The ServeApplicationSchema of a stack.

    Replica counts stand under `deployments`, where Ray Serve scales without rebuilding the application: a change of
    topology within one kind starts or stops replicas and leaves the others serving.
    """
    roles = stack.topology_.roles
    configs = {role: llm_config(stack, role) for role in roles}
    if stack.topology_.disaggregated:
        import_path = "ray.serve.llm:build_pd_openai_app"
        args: dict[str, Any] = {"prefill_config": configs["prefill"], "decode_config": configs["decode"]}
    else:
        import_path = "ray.serve.llm:build_openai_app"
        args = {"llm_configs": [configs["aggregated"]]}
    args["ingress_deployment_config"] = {"num_replicas": 1}
    deployments = [{"name": deployment_name(role, stack.model), "num_replicas": n} for role, n in roles.items()]
    deployments.append({"name": "OpenAiIngress", "num_replicas": ingress_replicas(stack)})
    return {
        "name": APPLICATION,
        "route_prefix": "/",
        "import_path": import_path,
        "args": args,
        "deployments": deployments,
    }


def serve_config(stack: Stack) -> dict[str, Any]:
    """The ServeDeploySchema of a stack: what `serve deploy` or a RayService's serveConfigV2 takes."""
    ports = stack.local_ports
    return {
        "proxy_location": "EveryNode",
        "http_options": {"host": "127.0.0.1", "port": ports.http} if ports else {"host": "0.0.0.0", "port": 8000},  # noqa: S104
        "applications": [application(stack)],
    }


def deployment_name(role: Role, model: str) -> str:
    """The name Ray Serve LLM 2.55 gives the deployment of a role (`core/server/builder.py`)."""
    prefix = {"prefill": "Prefill", "decode": "Decode", "aggregated": "LLMServer"}[role]
    return f"{prefix}:{model.replace('/', '--').replace('.', '_')}"


def ingress_replicas(stack: Stack) -> int:
    """How many ingress replicas a stack runs: the same rule for every topology, so that no side gets a wider door."""
    if stack.ingress_replicas is not None:
        return stack.ingress_replicas
    return 1 if stack.platform == "cpu" else _INGRESS_PER_REPLICA * stack.topology_.replicas
