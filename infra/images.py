"""`images.build`: both images as resources docker-build:index:Image, which build and push in an update only."""

from dataclasses import dataclass

import pulumi

from serving.image_arguments import BENCHMARK, ImageTarget, engine_image, image_target
from serving.stack import Stack

# Nobody's build of ROCm's engine image has been timed here: RIXL, UCX, Triton and 30 GB of downloads and pushes.
_TIMEOUT = "6h"


@dataclass(frozen=True)
class BuiltImages:
    """References with digests, known when the images are pushed; in a preview of a build, not known."""

    engine: pulumi.Output[str]
    benchmark: pulumi.Output[str]


def build_images(stack: Stack, stack_name: str) -> BuiltImages | None:
    """Register both, or nothing where the stack file gives references."""
    if stack.images is None or stack.images.build is None:
        return None
    registry = stack.images.build.registry
    engine, benchmark = (
        _image(image_target(name), registry, stack_name) for name in (engine_image(stack.platform), BENCHMARK)
    )
    return BuiltImages(engine, benchmark)


def _image(target: ImageTarget, registry: str, stack_name: str) -> pulumi.Output[str]:
    import pulumi_docker_build as docker  # only on the way of those who build

    repository = f"{registry}/{target.repository}"
    cache = f"{repository}:cache"
    to = docker.CacheToRegistryArgs(ref=cache, mode=docker.CacheMode.MAX, image_manifest=True, oci_media_types=True)
    image = docker.Image(
        target.repository,
        push=True,
        # A preview shows that there is something to build, and reads the Dockerfile; it starts no builder.
        build_on_preview=False,
        context=docker.BuildContextArgs(location="."),
        dockerfile=docker.DockerfileArgs(location=target.dockerfile),
        target=target.stage,
        build_args=target.arguments,
        platforms=[docker.Platform.LINUX_AMD64],
        # A tag for people, and so that a registry that collects what has none keeps it. Pods take the digest.
        tags=[f"{repository}:{stack_name}"],
        cache_from=[docker.CacheFromArgs(registry=docker.CacheFromRegistryArgs(ref=cache))],
        cache_to=[docker.CacheToArgs(registry=to)],
        opts=pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create=_TIMEOUT, update=_TIMEOUT)),
    )
    return image.ref
