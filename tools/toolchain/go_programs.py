"""The Go programs that are built here where nothing installed will do. Their versions: versions.toml and go.mod.

Build times are of one program after the others of its module, on 2 cores, from idle to busy.
"""

from functools import cache

from .go_build import Asset, GoProgram
from .versions import ROOT, versions

_MODULES = ROOT / "tools"
# Kubernetes keeps its version in two packages. Unless the linker sets it, servers answer `v0.0.0-master+...`, which
# clients and Pulumi's provider take for an ancient Kubernetes.
_KUBERNETES_VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
_KUBERNETES_TIMES = {
    "kube-apiserver": "3 to 7 min",
    "kube-controller-manager": "1 to 2 min",
    "kube-scheduler": "15 s",
    "kubectl": "1 min",
}


@cache
def pulumi() -> GoProgram:
    """The Pulumi CLI."""
    pins = versions()["pulumi"]
    return GoProgram(
        name="pulumi",
        item="pulumi",
        version=pins["version"],
        module_dir=_MODULES / "pulumi",
        package=pins["command"],
        usual_time="6 to 9 min",
        variables=(f"{pins['version_variable']}=v{pins['version']}",),
        instead="pulumi (pulumi.com/docs/install)",
    )


@cache
def kubernetes_provider() -> GoProgram:
    """Pulumi's Kubernetes provider, with a main package of ours: see tools/pulumi-kubernetes/main.go."""
    pins = versions()["pulumi_kubernetes"]
    folder = "cmd/pulumi-resource-kubernetes"
    return GoProgram(
        name="pulumi-resource-kubernetes",
        item="kubernetes-provider",
        version=pins["version"],
        module_dir=_MODULES / "pulumi-kubernetes",
        package=".",
        usual_time="7 to 14 min, 1.5 GB of memory,",
        variables=(f"main.version={pins['version']}",),
        sources=("main.go",),
        module=pins["module"],
        assets=tuple(Asset(name, (f"{folder}/{name}",)) for name in ("schema.json", "terraform-mapping.json")),
        instead=f"it (`pulumi plugin install resource kubernetes v{pins['version']}`, where the network allows that)",
    )


@cache
def control_plane() -> tuple[GoProgram, ...]:
    """A Kubernetes without containers: its servers, simulated nodes, KubeRay's operator, and kubectl."""
    return (_etcd(), *(_kubernetes(name) for name in _KUBERNETES_TIMES), _kwok(), _ray_operator())


def every() -> tuple[GoProgram, ...]:
    """All of them."""
    return (pulumi(), kubernetes_provider(), *control_plane(), *image_builders())


def _etcd() -> GoProgram:
    pins = versions()["etcd"]
    return GoProgram(
        name="etcd",
        item="etcd",
        version=pins["version"],
        module_dir=_MODULES / "etcd",
        package=pins["module"],
        usual_time="1 min",
    )


def _kubernetes(name: str) -> GoProgram:
    pins = versions()["kubernetes"]
    version = pins["version"]
    major, minor, _ = version.split(".")
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    return GoProgram(
        name=name,
        item=name,
        version=version,
        module_dir=_MODULES / "kubernetes",
        package=f"{pins['module']}/cmd/{name}",
        usual_time=_KUBERNETES_TIMES[name],
        variables=tuple(
            f"{package}.{variable}={value}"
            for package in _KUBERNETES_VERSION_PACKAGES
            for variable, value in values.items()
        ),
    )


def _kwok() -> GoProgram:
    pins = versions()["kwok"]
    # What kwok's own installation applies: without stages a simulated node never becomes ready and a pod never runs.
    stages = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
    return GoProgram(
        name="kwok",
        item="kwok",
        version=pins["version"],
        module_dir=_MODULES / "kwok",
        package=f"{pins['module']}/cmd/kwok",
        usual_time="1 to 3 min",
        module=pins["module"],
        assets=(Asset("stages.yaml", tuple(f"kustomize/stage/{stage}/*.yaml" for stage in stages)),),
    )


def _ray_operator() -> GoProgram:
    pins = versions()["kuberay"]
    return GoProgram(
        name="ray-operator",
        item="ray-operator",
        version=pins["version"],
        module_dir=_MODULES / "kuberay",
        package=pins["module"],
        usual_time="1 to 3 min",
        module=pins["module"],
        assets=(Asset("crds/", ("config/crd/bases/*.yaml",)),),
    )


@cache
def image_builders() -> tuple[GoProgram, ...]:
    """BuildKit and buildx: images without a Docker daemon."""
    buildkit, buildx = versions()["buildkit"], versions()["buildx"]
    programs = (("buildkitd", buildkit, "buildkit", "5 to 8 min"), ("buildctl", buildkit, "buildkit", "20 s"))
    return tuple(
        GoProgram(
            name=name,
            item=name,
            version=pins["version"],
            module_dir=_MODULES / folder,
            package=f"{pins['module']}/cmd/{name}",
            usual_time=usual_time,
        )
        for name, pins, folder, usual_time in (*programs, ("buildx", buildx, "buildx", "6 to 9 min"))
    )
