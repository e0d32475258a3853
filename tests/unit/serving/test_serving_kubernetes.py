"""The RayService of every shipped Kubernetes stack, and of other places' nodes."""

from typing import Any

import pytest
import yaml
from rendered_services import BASE, IMAGES, engine, engine_pod, of_profile, spec, stack

from serving.errors import ConfigError
from serving.kubernetes_settings import Results
from serving.node_profiles import PROFILES
from serving.stack import Stack, parse_settings, parse_stack
from serving.stack_files import load_stack, stack_names
from serving.yaml_text import yaml_text

KUBERNETES = [name for name in stack_names() if load_stack(name).target == "kubernetes"]


def shipped(name: str) -> Stack:
    return Stack.model_validate({**load_stack(name).model_dump(by_alias=True, exclude_unset=True), "images": IMAGES})


@pytest.mark.parametrize("name", KUBERNETES)
def test_one_engine_pod_a_replica_takes_a_whole_node(name: str) -> None:
    settings = shipped(name)
    group = spec(settings)["rayClusterConfig"]["workerGroupSpecs"][0]
    assert group["replicas"] == group["minReplicas"] == group["maxReplicas"] == settings.topology_.replicas
    resources = engine(settings)["resources"]
    assert resources["limits"] == resources["requests"]
    assert resources["limits"]["amd.com/gpu"] == "8"
    assert {f"rdma/fabric{n}": "1" for n in range(8)}.items() <= resources["limits"].items()
    rules = engine_pod(settings)["spec"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert rules[0]["topologyKey"] == "kubernetes.io/hostname"
    assert rules[0]["labelSelector"]["matchLabels"].items() <= engine_pod(settings)["metadata"]["labels"].items()


def test_the_head_has_no_ray_cpus_and_no_gpu() -> None:
    head = spec(stack())["rayClusterConfig"]["headGroupSpec"]
    assert head["rayStartParams"]["num-cpus"] == "0"
    assert "amd.com/gpu" not in head["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert "hostNetwork" not in head["template"]["spec"]  # nothing of Ray's control plane on a node's address


def test_rays_object_store_fits_into_shared_memory_and_the_memory_limit() -> None:
    cluster = spec(stack())["rayClusterConfig"]
    for group in (cluster["headGroupSpec"], cluster["workerGroupSpecs"][0]):
        pod = group["template"]["spec"]
        shm = next(volume["emptyDir"]["sizeLimit"] for volume in pod["volumes"] if volume["name"] == "shm")
        memory = pod["containers"][0]["resources"]["limits"]["memory"]
        gib = int(group["rayStartParams"]["object-store-memory"]) / 1024**3
        assert gib < int(shm.removesuffix("Gi")) < int(memory.removesuffix("Gi"))


def test_a_full_pool_never_gets_a_second_cluster_and_ray_asks_for_a_token() -> None:
    service = spec(stack())
    assert service["upgradeStrategy"] == {"type": "None"}
    assert service["rayClusterConfig"]["authOptions"] == {"mode": "token"}


def test_the_serve_config_is_the_stacks_own() -> None:
    application = yaml.safe_load(spec(stack())["serveConfigV2"])["applications"][0]
    counts = {entry["name"].split(":")[0]: entry["num_replicas"] for entry in application["deployments"]}
    assert (counts["Prefill"], counts["Decode"]) == (2, 1)


def test_host_network_resolves_services_and_has_no_attachments() -> None:
    pod = engine_pod(stack())
    assert pod["spec"]["hostNetwork"] is True
    assert pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert "annotations" not in pod["metadata"]


def test_multus_moves_devices_into_the_pod_instead() -> None:
    nodes = {"network": "multus", "hostDevices": {f"roce-net-fabric{n}": f"fabric{n}" for n in range(8)}}
    pod = engine_pod(stack(cluster={"provider": "doks", "nodes": nodes}))
    assert "hostNetwork" not in pod["spec"]
    networks = pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].split(",")
    assert networks[0] == "roce-net-fabric0@fabric0"
    assert len(networks) == 8


def test_sriov_names_the_clusters_attachments() -> None:
    pod = engine_pod(stack(cluster={"provider": "existing", "profile": "oke-mi300x"}))
    assert pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] == ",".join(["rdma-vf"] * 8)
    assert "hostNetwork" not in pod["spec"]
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/rdma-vf"] == "8"


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ({"network": "host", "attachments": ["rdma-vf"]}, "host ignores network attachments"),
        ({"network": "multus"}, "needs the attachments"),
        ({"network": "sriov", "hostDevices": {"a": "fabric0"}}, "goes with network: multus"),
        ({"network": "pod"}, "pod has no RDMA NICs"),
        ({"gpu": 8}, "known here: gpuResource"),
        ({"gpusPerNode": -1}, "cluster.nodes.gpusPerNode"),
    ],
)
def test_network_modes_exclude_each_other(nodes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        stack(cluster={"provider": "doks", "nodes": nodes})


@pytest.mark.parametrize(("given", "text"), [(96, "96"), (1.5, "1.5"), ("500m", "500m")])
def test_a_quantity_may_be_a_number(given: Any, text: str) -> None:
    """YAML and `pulumi config set --path` make a number of what looks like one."""
    nodes = {"engineCpu": given, "headCpu": given}
    size = {"size": 20 * 1024**3}
    settings = parse_settings({**BASE, "cluster": {"provider": "doks", "nodes": nodes}, "results": size})
    assert isinstance(settings, Stack)
    assert engine(settings)["resources"]["limits"]["cpu"] == settings.profile.head_cpu == text
    assert settings.results == Results(size="21474836480")


def test_a_quantity_is_no_truth() -> None:
    with pytest.raises(ConfigError, match=r"^cluster\.nodes\.headCpu: .*True"):
        stack(cluster={"provider": "doks", "nodes": {"headCpu": True}})


def test_images_are_required() -> None:
    with pytest.raises(ConfigError, match=r"images\.engine"):
        spec(parse_stack({**BASE, "images": None, "cluster": {"provider": "doks"}}))


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_makes_a_service(name: str) -> None:
    assert engine(of_profile(name))["image"] == IMAGES["engine"]


@pytest.mark.parametrize("name", KUBERNETES)
def test_a_go_parser_reads_no_boolean_where_a_text_is_meant(name: str) -> None:
    """KubeRay reads YAML with Go's parser, which takes bare y and n for booleans; PyYAML, which writes it, does not."""
    text = spec(shipped(name))["serveConfigV2"]
    scalars = [token for token in yaml.scan(text) if isinstance(token, yaml.ScalarToken)]
    assert [token.value for token in scalars if token.plain and token.value in ("y", "Y", "n", "N")] == []
    assert "'y'" in text  # UCX_ROCM_COPY_DMABUF


def test_the_rehearsal_model_has_to_be_on_the_nodes() -> None:
    with pytest.raises(ConfigError, match=r"weights\.mode.*set local"):
        stack(model="rehearsal-qwen3-moe", platform="cpu")


@pytest.mark.parametrize("text", ["y", "n", "1e3", "0o7", "12e03", "-1", ".5", "2p1d", "1.34"])
def test_a_text_that_looks_like_something_else_is_quoted(text: str) -> None:
    assert yaml_text({"a": text}) == f"a: '{text}'\n"
