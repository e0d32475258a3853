"""A stand-in for Ray Serve on one head: what was deployed, and the state that its details report.

A new config is DEPLOYING for a moment, then what the control file says for its Kubernetes namespace; RUNNING when it
says nothing. Engines that ask for more GPUs than the Ready workers have keep it DEPLOYING, as they would Serve.
"""

import json
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Literal

from tools.rehearsal.ray_pods import RayPod

Status = Literal["RUNNING", "DEPLOYING", "DEPLOY_FAILED", "UNHEALTHY"]
DEPLOYING_S = 1.0
_ANY = "*"
_DEPLOYMENT_STATUS = {"RUNNING": "HEALTHY", "DEPLOYING": "UPDATING"}


class Outcomes:
    """The control file: namespace -> [status, message]. Written by a test, read at every request."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def set(self, status: Status, message: str = "", namespace: str = _ANY) -> None:
        """What applications in `namespace` are from now on, those that are deployed included."""
        with tempfile.NamedTemporaryFile("w", dir=self._path.parent, delete=False) as file:
            json.dump({**self._read(), namespace: [status, message]}, file)
        Path(file.name).rename(self._path)

    def of(self, namespace: str) -> tuple[str, str]:
        """(status, message)"""
        known = self._read()
        status, message = known.get(namespace) or known.get(_ANY) or ("RUNNING", "")
        return status, message

    def _read(self) -> dict[str, Any]:
        return json.loads(self._path.read_text()) if self._path.exists() else {}


class Serve:
    """Serve on the head pod `head`."""

    def __init__(self, head: RayPod, outcomes: Outcomes) -> None:
        self._head = head
        self._outcomes = outcomes
        self._lock = threading.Lock()
        self._config: dict[str, Any] = {}
        self._applications: dict[str, dict[str, Any]] = {}
        self._deployed: dict[str, float] = {}  # time.time()

    def deploy(self, config: dict[str, Any]) -> None:
        """A PUT declares all applications that shall exist. KeyError where a name or an import path is missing."""
        declared = {application.get("name", "default"): application for application in config["applications"]}
        for application in declared.values():
            application["import_path"]
        with self._lock:
            for name, application in declared.items():
                if self._applications.get(name) != application:
                    self._deployed[name] = time.time()
            self._config, self._applications = config, declared

    def routes(self) -> dict[str, str]:
        """Route prefix -> application."""
        with self._lock:
            return {app.get("route_prefix", "/"): name for name, app in self._applications.items()}

    def details(self, gpus: int) -> dict[str, Any]:
        """ServeInstanceDetails (ray.serve.schema). `gpus`: how many the Ready workers have."""
        with self._lock:
            missing = sum(map(gpus_needed, self._applications.values())) - gpus
            applications = {name: self._details(name, missing) for name in self._applications}
            return {
                "controller_info": {},
                "proxy_location": self._config.get("proxy_location"),
                "http_options": self._config.get("http_options"),
                "grpc_options": None,
                "proxies": {},
                "deploy_mode": "MULTI_APP",
                "target_capacity": self._config.get("target_capacity"),
                "applications": applications,
            }

    def _details(self, name: str, missing_gpus: int) -> dict[str, Any]:
        application = self._applications[name]
        status, message = self._outcomes.of(self._head.namespace)
        waiting = ""
        if time.time() - self._deployed[name] < DEPLOYING_S:
            status, message = "DEPLOYING", ""
        elif status == "RUNNING" and missing_gpus > 0:
            status, message = "DEPLOYING", ""
            waiting = f"waiting for resources: replicas that ask for {missing_gpus} more GPUs cannot be scheduled"
        return {
            "name": name,
            "route_prefix": application.get("route_prefix", "/"),
            "docs_path": None,
            "status": status,
            "message": message,
            "last_deployed_time_s": self._deployed[name],
            "source": "declarative",
            "deployed_app_config": application,
            "deployments": {
                deployment["name"]: _deployment(deployment, status, message or waiting)
                for deployment in application.get("deployments", [])
            },
        }


def gpus_needed(application: dict[str, Any]) -> int:
    """GPUs that an application of Ray Serve LLM asks for: replicas x tensor x pipeline parallel size, by role.

    0 for other applications and where the bundles ask for no GPU (CPU rehearsal).
    """
    arguments = application.get("args") or {}
    models = arguments.get("llm_configs") or [{}]
    roles = {
        "Prefill": arguments.get("prefill_config"),
        "Decode": arguments.get("decode_config"),
        "LLMServer": models[0],
    }
    replicas = {d["name"].partition(":")[0]: d.get("num_replicas") or 1 for d in application.get("deployments", [])}
    return sum(replicas.get(role, 1) * _gpus_of(config) for role, config in roles.items() if config)


def _gpus_of(config: dict[str, Any]) -> int:
    bundle = (config.get("placement_group_config") or {}).get("bundle_per_worker") or {}
    engine = config.get("engine_kwargs") or {}
    workers = engine.get("tensor_parallel_size", 1) * engine.get("pipeline_parallel_size", 1)
    return int(workers * bundle.get("GPU", 1 if config.get("accelerator_type") else 0))


def _deployment(declared: dict[str, Any], status: str, message: str) -> dict[str, Any]:
    count = declared.get("num_replicas") or 1
    state = "RUNNING" if status == "RUNNING" else "STARTING"
    replicas = [{"state": state, "replica_id": f"{declared['name']}#{number}"} for number in range(count)]
    return {
        "name": declared["name"],
        "status": _DEPLOYMENT_STATUS.get(status, status),
        "status_trigger": "CONFIG_UPDATE_COMPLETED" if status == "RUNNING" else "CONFIG_UPDATE_STARTED",
        "message": message if status != "RUNNING" else "",
        "deployment_config": declared,
        "target_num_replicas": count,
        "replicas": replicas,
    }
