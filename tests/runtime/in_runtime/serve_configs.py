"""Examines Serve configs with the classes that will read them: `python serve_configs.py CASES RESULTS` (JSON files).

CASES is {name: Serve config}, RESULTS {name: facts or error}. A config goes the way it goes in the Serve controller, up
to the start of replicas: schema, application builder (which validates PDServingArgs or LLMServingArgs), overrides. Then
each engine's arguments go to vLLM's own classes.
"""

import json
import sys
from pathlib import Path
from typing import Any

from own_ray import own_ray
from ray._common.utils import import_attr
from ray.serve._private.api import call_user_app_builder_with_args_if_necessary
from ray.serve._private.application_state import override_deployment_info
from ray.serve._private.build_app import build_app
from ray.serve._private.config import DeploymentConfig, ReplicaConfig
from ray.serve._private.deployment_info import DeploymentInfo
from ray.serve.deployment import Deployment
from ray.serve.llm import LLMConfig
from ray.serve.schema import ServeDeploySchema
from vllm.config import CacheConfig, KVTransferConfig
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory


def examine(config: dict[str, Any]) -> dict[str, Any]:
    """What Serve would start: {"deployments": {name: ...}, "engines": {deployment name: ...}}."""
    schema = ServeDeploySchema.model_validate(config)
    (application,) = schema.applications
    app = call_user_app_builder_with_args_if_necessary(import_attr(application.import_path), application.args)
    built = build_app(app, name=application.name)
    infos = override_deployment_info({d.name: _as_the_controller_gets_it(d) for d in built.deployments}, application)
    return {
        "ingress": built.ingress_deployment_name,
        "deployments": {name: _deployment(info) for name, info in infos.items()},
        "engines": {
            deployment.name: _engine(deployment.init_kwargs["llm_config"])
            for deployment in built.deployments
            if "llm_config" in deployment.init_kwargs
        },
    }


def _as_the_controller_gets_it(deployment: Deployment) -> DeploymentInfo:
    """Through bytes: the handles among a deployment's arguments would otherwise look for a running Serve."""
    return DeploymentInfo(
        DeploymentConfig.from_proto_bytes(deployment._deployment_config.to_proto_bytes()),
        ReplicaConfig.from_proto_bytes(deployment._replica_config.to_proto_bytes()),
        start_time_ms=0,
        deployer_job_id="",
    )


def _deployment(info: DeploymentInfo) -> dict[str, Any]:
    replica = info.replica_config
    return {
        "replicas": info.deployment_config.num_replicas,
        "autoscaling": info.deployment_config.autoscaling_config is not None,
        "bundles": replica.placement_group_bundles or [],
        "strategy": replica.placement_group_strategy,
        "environment": (replica.ray_actor_options.get("runtime_env") or {}).get("env_vars", {}),
    }


def _engine(llm_config: LLMConfig) -> dict[str, Any]:
    engine = llm_config.get_engine_config()
    arguments = engine.get_initialization_kwargs()
    # Ray hands these on unread and vLLM refuses a wrong one only in the replica, minutes after the deployment.
    CacheConfig(
        block_size=arguments["block_size"],
        cache_dtype=arguments["kv_cache_dtype"],
        enable_prefix_caching=arguments["enable_prefix_caching"],
        **{key: arguments[key] for key in ("gpu_memory_utilization",) if key in arguments},
    )
    transfer = arguments.get("kv_transfer_config")
    connector = KVConnectorFactory.get_connector_class(KVTransferConfig(**transfer)).__name__ if transfer else None
    return {
        "gpu": engine.use_gpu,
        "devices": engine.num_devices,
        "executor": arguments["distributed_executor_backend"],
        "connector": connector,
        "arguments": {key: value for key, value in arguments.items() if key != "kv_transfer_config"},
    }


def main(cases: Path, results: Path) -> None:
    """Every case is examined, whatever became of the others."""
    answers: dict[str, Any] = {}
    with own_ray():
        for name, config in json.loads(cases.read_text()).items():
            try:
                answers[name] = examine(config)
            except Exception as error:  # the point of a case may be that it is refused
                answers[name] = {"error": f"{type(error).__name__}: {error}"}
    results.write_text(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
