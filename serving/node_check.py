"""Whether nodes have what a replica of a platform runs on: what has not would wait, or serve from something else."""

from serving.errors import ConfigError
from serving.node_profiles import NodeProfile
from serving.platforms import Platform

_OTHER_MAKER = {"rocm": "nvidia.com/", "cuda": "amd.com/"}


def check_nodes(platform: Platform, profile: NodeProfile) -> None:
    """Raises ConfigError."""
    name, there, wanted = profile.gpu_resource, profile.gpus_per_node, platform.gpus_per_replica
    if not wanted:
        if there:
            problem = f"{platform.name} has no use for the {there} {name} that an engine pod asks for"
            raise ConfigError("platform", problem, "take a node profile without GPUs (kind), or set rocm or cuda")
        if profile.accelerator_type:
            raise ConfigError("cluster.nodes.acceleratorType", f"{platform.name} replicas have none", "remove it")
        return
    if there < wanted:
        problem = f"is {there}, and a replica on {platform.name} takes {wanted}"
        raise ConfigError("cluster.nodes.gpusPerNode", problem, "take another node profile, or another platform")
    if not name:
        raise ConfigError("cluster.nodes.gpuResource", "is empty: a pod would get no GPU", "name the plugin's resource")
    if name.startswith(_OTHER_MAKER[platform.name]):
        problem = f"{name} is no GPU that {platform.name} runs on"
        raise ConfigError("cluster.nodes.gpuResource", problem, "set it, or another platform")
