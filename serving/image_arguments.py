"""What each Dockerfile of docker/ is built with: every argument, from versions.toml and nowhere else."""

from dataclasses import dataclass

from serving.platforms import PlatformName
from serving.versions import versions

BENCHMARK = "benchmark"
_ENGINES = ("rocm", "cpu")


@dataclass(frozen=True)
class ImageTarget:
    """One image, as docker/docker-bake.hcl has it; tests/images holds the two against each other."""

    dockerfile: str
    stage: str
    repository: str
    arguments: dict[str, str]


def image_target(name: str) -> ImageTarget:
    """The image of a bake target, without its debug variants."""
    stage, repository = ("engine", f"engine-{name}") if name in _ENGINES else (name, name)
    return ImageTarget(f"docker/{name}.Dockerfile", stage, repository, build_arguments()[name])


def engine_image(platform: PlatformName) -> str:
    """Bake target of a platform's engine image; empty where docker/ has none."""
    return platform if platform in _ENGINES else ""


def reference(name: str) -> str:
    """A base image as a Dockerfile takes it: by digest if it is known, and with its tag for people."""
    image: dict[str, str] = versions()["image"][name]
    return f"{image['reference']}@{image['digest']}" if image["digest"] else image["reference"]


def build_arguments() -> dict[str, dict[str, str]]:
    """Bake target -> build argument -> value."""
    data = versions()
    build: dict[str, str] = data["image"]["build"]
    python = {
        "PYTHON_IMAGE": reference("python"),
        "PYTHON_VERSION": data["python"]["version"],
        "UV_VERSION": data["uv"]["version"],
    }
    rocm: dict[str, str] = data["platform"]["rocm"]
    return {
        "rocm": {
            **python,
            "BUILD_IMAGE": reference("rocm_build"),
            "RAY_VERSION": rocm["ray"],
            "VLLM_VERSION": rocm["vllm"],
            "VLLM_INDEX": build["vllm_index"],
            "UCX_REPOSITORY": build["ucx_repository"],
            "UCX_COMMIT": rocm["ucx"],
            "RIXL_REPOSITORY": build["rixl_repository"],
            "RIXL_COMMIT": rocm["rixl"],
            "TRITON_REPOSITORY": build["triton_repository"],
            "TRITON_COMMIT": rocm["triton"],
            "WHEEL_PLATFORM": build["wheel_platform"],
            "GPU_TARGET": build["gpu_target"],
            "LAYER_LIMIT_MB": build["layer_limit_mb"],
            "VERSION_SET": "rocm",
        },
        "cpu": {
            **python,
            "TCMALLOC_PACKAGE": data["libtcmalloc"]["package"],
            "TCMALLOC_LIBRARY": data["libtcmalloc"]["library"],
            "LAYER_LIMIT_MB": build["layer_limit_mb"],
            "VERSION_SET": "cpu",
        },
        "benchmark": python,
    }
