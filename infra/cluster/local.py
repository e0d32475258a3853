"""A Ray head on this machine, for rehearsals: resource pd:index:LocalRayCluster."""

from pathlib import Path

import pulumi

from serving.stack import Stack
from tools.toolchain import tcmalloc
from tools.toolchain.cache import cache_root
from tools.toolchain.environments import interpreter

_ROOT = Path(__file__).resolve().parents[2]
# Ray CPUs are book-keeping, not cores: two cores carry one prefill and one decode (measured). A replica takes 2, its
# actor and its engine's bundle; an ingress 1; the task that builds the application 1. So 16 carry six replicas and one
# that replaces another. A constant, because a change of it needs a new head, and a change of topology must not.
_RAY_CPUS = 16


class LocalRayCluster(pulumi.CustomResource):
    """Outputs: address, serviceUrl, metricsUrls, tokenFile, directory. See infra/provider/local_ray_cluster.py."""

    address: pulumi.Output[str]
    serviceUrl: pulumi.Output[str]  # noqa: N815  names on the wire
    tokenFile: pulumi.Output[str]  # noqa: N815
    metricsUrls: pulumi.Output[list[str]]  # noqa: N815
    directory: pulumi.Output[str]

    def __init__(self, name: str, stack: Stack, opts: pulumi.ResourceOptions | None = None) -> None:
        ports = stack.local_ports
        assert ports is not None  # noqa: S101  settings: provider local has ports
        python = interpreter("runtime-cpu")
        inputs = {
            "ports": ports.listeners(),
            "workerPorts": [ports.first_worker, ports.last_worker],
            "python": str(python),
            "pythonPath": str(_ROOT),
            "cpus": _RAY_CPUS,
            "model": stack.model_source,
            "environment": {
                "LD_PRELOAD": _preloaded_libraries(python),  # vLLM 0.18's CPU worker refuses to start without them
                "VLLM_CACHE_ROOT": str(cache_root() / "engine"),
                "AUTOSCALER_METRIC_PORT": str(ports.autoscaler_metrics),
                "DASHBOARD_METRIC_PORT": str(ports.dashboard_metrics),
                "HF_HUB_OFFLINE": "1",
                "VLLM_NO_USAGE_STATS": "1",
                "RAY_USAGE_STATS_ENABLED": "0",
                # Two busy cores start a raylet or a worker more slowly than Ray's defaults (30 s, 60 s) allow.
                "RAY_raylet_start_wait_time_s": "300",
                "RAY_worker_register_timeout_seconds": "300",
            },
            # Outputs the provider fills in.
            "address": None,
            "serviceUrl": None,
            "metricsUrls": None,
            "tokenFile": None,
            "directory": None,
            "supervisor": None,
        }
        super().__init__("pd:index:LocalRayCluster", name, inputs, opts)


def _preloaded_libraries(python: Path) -> str:
    """What vLLM 0.18's CPU worker looks for in LD_PRELOAD: tcmalloc, and the OpenMP runtime of its environment."""
    return f"{tcmalloc.locate()}:{python.parents[1] / 'lib' / 'libiomp5.so'}"
