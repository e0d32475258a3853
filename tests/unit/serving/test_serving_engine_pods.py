"""What an engine pod and the Ray in it get: rights, address, GPUs, variables; and what only waits for it."""

import json
from typing import Any

import pytest
import yaml
from rendered_services import (
    IMAGES,
    engine,
    engine_pod,
    of_profile,
    plain_variables,
    replicas_environments,
    spec,
    stack,
    start,
)

from serving.errors import ConfigError
from serving.node_profiles import PROFILES
from serving.stack import parse_stack
from serving.versions import platform_versions


def test_rdma_needs_pinned_memory_and_the_nodes_kernel_options() -> None:
    container = engine(stack())
    assert "IPC_LOCK" in container["securityContext"]["capabilities"]["add"]
    assert "privileged" not in container["securityContext"]
    assert {"name": "boot", "mountPath": "/boot", "readOnly": True} in container["volumeMounts"]
    host = next(entry for entry in container["env"] if entry["name"] == "VLLM_NIXL_SIDE_CHANNEL_HOST")
    assert host["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"  # vLLM's default is localhost


def test_a_load_of_any_length_kills_nothing() -> None:
    """The Serve proxy answers after a load and only makes ready. What kills is KubeRay's own (tests/cluster)."""
    container = engine(stack())
    assert container["readinessProbe"]["httpGet"] == {"path": "/-/healthz", "port": 8000}
    assert not {"livenessProbe", "startupProbe"} & container.keys()
    # Older ones make KubeRay's probe a command, which needs bash and wget in the image.
    assert all(float(platform_versions(name)["ray"].rpartition(".")[0]) >= 2.53 for name in ("rocm", "cuda", "cpu"))


@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "kind"])
def test_capabilities_reach_the_engine_because_it_runs_as_root(profile: str) -> None:
    """Kubernetes adds them to the bounding set; a process of another user has none of them after its exec."""
    context = engine(stack(cluster={"provider": "existing", "profile": profile}))["securityContext"]
    assert (context["runAsUser"], context["capabilities"]) == (0, {"add": ["IPC_LOCK", "SYS_PTRACE"]})
    head = spec(stack())["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    assert not {"runAsUser", "capabilities"} & head["securityContext"].keys()


def test_no_container_is_privileged_unless_a_stack_says_so() -> None:
    for settings, privileged in ((stack(), False), (stack(security={"privileged": True}), True)):
        pod = engine_pod(settings)["spec"]
        head = spec(settings)["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]
        context = pod["containers"][0]["securityContext"]
        assert context.get("privileged", False) is privileged
        # The API server refuses the two together.
        assert context.get("allowPrivilegeEscalation", True) is privileged
        assert head["containers"][0]["securityContext"] == {"allowPrivilegeEscalation": False}
        for template in (pod, head):
            assert template["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
            assert template["automountServiceAccountToken"] is False


def test_ray_listens_where_the_kubelet_asks() -> None:
    """In the node's network Ray would take the address that leads to the head, which may be the overlay's."""
    assert start(stack())["node-ip-address"] == "$POD_IP"
    address = next(variable for variable in engine(stack())["env"] if variable["name"] == "POD_IP")
    assert address["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"


def test_ray_has_the_gpus_whatever_their_resource_is_called() -> None:
    """KubeRay counts resources whose name ends in `gpu`, and no others."""
    nodes = {"gpuResource": "amd.com/gpu_vf"}
    assert start(stack(cluster={"provider": "existing", "nodes": nodes}))["num-gpus"] == "8"


@pytest.mark.parametrize("name", PROFILES)
def test_engine_pods_announce_the_gpu_that_replicas_ask_for(name: str) -> None:
    """Ray 2.55 does not know an MI325X that is a virtual function, and its replicas would wait for ever."""
    settings = of_profile(name)
    args = yaml.safe_load(spec(settings)["serveConfigV2"])["applications"][0]["args"]
    asked = {config["accelerator_type"] for config in args.values() if "accelerator_type" in config}
    announced = json.loads(start(settings).get("resources", "{}"))
    assert announced == {f"accelerator_type:{name}": 1 for name in asked}
    assert bool(asked) == (name != "kind")


def test_the_nodes_variables_reach_engine_pods_and_replicas_alike() -> None:
    variables = {"UCX_NET_DEVICES": "mlx5_0:1,mlx5_2:1", "UCX_ROCM_COPY_DMABUF": "try", "UCX_IB_GID_INDEX": 3}
    settings = stack(cluster={"provider": "doks", "nodes": {"environment": variables}})
    wanted = {**settings.platform_.environment, **variables, "UCX_IB_GID_INDEX": "3"}
    assert wanted["UCX_TLS"] == "rc,sm,self,rocm_copy,rocm_ipc"  # the platform's, where nothing else is said
    assert replicas_environments(settings) == [wanted, wanted]
    assert wanted.items() <= plain_variables(settings).items()
    head = spec(settings)["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    assert "UCX_NET_DEVICES" not in str(head["env"])


def test_a_profile_brings_variables_of_its_own() -> None:
    settings = stack(cluster={"provider": "existing", "profile": "oke-mi300x"})
    assert plain_variables(settings)["UCX_IB_TRAFFIC_CLASS"] == "41"
    assert all(variables["UCX_IB_GID_INDEX"] == "3" for variables in replicas_environments(settings))


def test_a_variable_is_added_to_those_of_the_profile() -> None:
    nodes = {"environment": {"UCX_NET_DEVICES": "mlx5_0:1", "UCX_IB_GID_INDEX": "1"}}
    variables = plain_variables(stack(cluster={"provider": "existing", "profile": "oke-mi300x", "nodes": nodes}))
    assert variables["UCX_NET_DEVICES"] == "mlx5_0:1"
    assert variables["UCX_IB_GID_INDEX"] == "1"
    assert variables["UCX_IB_TRAFFIC_CLASS"] == "41", "who names a NIC does not mean to forget its traffic class"


COMMIT = "a" * 40


@pytest.mark.parametrize(
    "weights",
    [
        {"mode": "dummy"},
        {"mode": "hub", "revision": COMMIT},
        {"mode": "nfs", "revision": COMMIT, "nfs": {"server": "s", "path": "/e"}},
    ],
    ids=lambda weights: weights["mode"],
)
def test_no_variable_is_there_twice(weights: dict[str, Any]) -> None:
    """Kubernetes would keep one of them. What this repository sets is therefore refused from the stack file."""
    names = [variable["name"] for variable in engine(stack(weights=weights, huggingFaceToken="x"))["env"]]
    assert len(set(names)) == len(names)
    for name in set(names) - stack().environment.keys():
        with pytest.raises(ConfigError, match=rf"^cluster\.nodes\.environment\.{name}: "):
            stack(cluster={"provider": "doks", "nodes": {"environment": {name: "x"}}})


def test_a_pod_of_kind_holds_a_replica_and_an_ingress() -> None:
    """A replica takes 2 Ray CPUs, its actor and its engine's bundle, and an ingress 1 (infra/cluster/local.py)."""
    settings = of_profile("kind")
    pods = settings.topology_.replicas
    assert int(engine(settings)["resources"]["limits"]["cpu"]) * pods >= 2 * pods + 1
    assert start(settings)["num-gpus"] == "0"


def test_scraping_by_annotation() -> None:
    pod = engine_pod(stack(monitoring="annotations"))
    assert pod["metadata"]["annotations"]["prometheus.io/port"] == "8080"


def test_cpu_replicas_of_a_laptop_ask_for_no_device() -> None:
    settings = parse_stack(
        {
            "model": "rehearsal-qwen3-moe",
            "topology": "1p1d",
            "scenario": "rehearsal",
            "platform": "cpu",
            "images": IMAGES,
            "cluster": {"provider": "existing", "profile": "kind"},
            "weights": {"mode": "local", "path": "/models/rehearsal"},
        }
    )
    pod = engine_pod(settings)["spec"]
    assert set(pod["containers"][0]["resources"]["limits"]) == {"cpu", "memory"}
    assert "affinity" not in pod
    assert "hostNetwork" not in pod
    assert "capabilities" not in pod["containers"][0]["securityContext"]


def test_another_places_gpu_has_another_name_in_ray() -> None:
    """Ray puts the type into every bundle, and no node of another type would ever take a replica."""
    settings = stack(cluster={"provider": "existing", "profile": "oke-mi300x"})
    args = yaml.safe_load(spec(settings)["serveConfigV2"])["applications"][0]["args"]
    assert {config["accelerator_type"] for config in args.values() if "accelerator_type" in config} == {
        "AMD-Instinct-MI300X-OAM"
    }
