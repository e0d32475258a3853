"""Container images of a stack on Kubernetes: given by digest, or built from docker/ in an update."""

from typing import Any

from pydantic import Field, model_validator

from serving.errors import ConfigError
from serving.kubernetes_grammar import DnsNameOrEmpty, ImageFolder, ImageOrEmpty
from serving.settings_base import Settings


class ImageBuild(Settings):
    """Both images are built from this checkout and pushed, by whatever `docker buildx` is logged in to."""

    registry: ImageFolder = Field(description="where images and their cache are pushed: registry.example.com/team")


class Images(Settings):
    """Container images, by digest: what was measured can be had again."""

    engine: ImageOrEmpty = Field(default="", description="Ray, vLLM, the transfer library and this package (docker/)")
    benchmark: ImageOrEmpty = Field(default="", description="AIPerf and this package")
    build: ImageBuild | None = Field(default=None, description="instead of both: build them. A preview builds nothing")
    pull_secret: DnsNameOrEmpty = Field(
        default="", description="name of an existing image pull secret in the stack's namespace"
    )

    @model_validator(mode="after")
    def _given_or_built(self) -> "Images":
        for name in ("engine", "benchmark"):
            if self.build is not None and getattr(self, name):
                raise ConfigError(f"images.{name}", "is built, says images.build", "remove one of the two")
            if self.build is None and not getattr(self, name):
                fix = "give its reference with a digest, or images.build to build it"
                raise ConfigError(f"images.{name}", "is required on Kubernetes", fix)
        return self

    @property
    def pull_secrets(self) -> dict[str, Any]:
        """What a pod's spec says about pulling these images; nothing for public ones."""
        return {"imagePullSecrets": [{"name": self.pull_secret}]} if self.pull_secret else {}

    def built(self, engine: str, benchmark: str) -> "Images":
        """These settings with the references that a build gave. Raises ConfigError for one without a digest."""
        for reference in (engine, benchmark):
            if "@sha256:" not in reference:
                raise ConfigError("images.build", f"gave {reference or 'nothing'}, which has no digest", "see its log")
        return Images.model_validate({"engine": engine, "benchmark": benchmark, "pullSecret": self.pull_secret})
