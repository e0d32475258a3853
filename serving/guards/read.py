"""From the text of a file to what the guards look at."""

from __future__ import annotations

import re
from collections.abc import Mapping

from serving.errors import ConfigError
from serving.guards.read_kubernetes import Manifests, is_manifest, read_manifest
from serving.guards.read_serve import applications, is_serve_config
from serving.guards.view import Engine, NodeFacts, PlatformName, View
from serving.guards.yaml_files import documents, duplicates
from serving.versions import platform_versions

# An image whose tag is the version of what is in it.
_IMAGES = {
    "ray": re.compile(r"(?:^|/)ray(?:-llm|-ml)?:(\d+\.\d+\.\d+)"),
    "vllm": re.compile(r"(?:^|/)vllm-openai(?:-rocm)?:v(\d+\.\d+\.\d+)"),
}
_NVIDIA = re.compile(
    r"NVIDIA|^(A10G?|A100|B200|B300|GB200|H100|H200|H20|L4|L40S?|T4|V100|P100|P4|K80|RTX)", re.IGNORECASE
)


class NothingToCheck(ConfigError):
    """The text is YAML of something else."""


def read(text: str, file: str, versions: Mapping[str, str] | None = None) -> View:
    """What a file holds. `versions`: of components, where the user gave them; they win over what images say.

    Raises ConfigError, one line, where the text is not YAML or holds nothing that guards know.
    """
    parts = Manifests()
    whole = documents(text, file)
    for document in whole:
        if is_serve_config(document):
            parts.serve.append(document)
            made = applications(document)
            parts.applications += made
            parts.engines += [engine for application in made for engine in application.engines]
        elif is_manifest(document):
            read_manifest(document, parts)
    if not (parts.engines or parts.pods or parts.serve or parts.queries):
        raise NothingToCheck(
            file,
            "holds neither a Ray Serve config nor a manifest with pods",
            "give a Serve config, a RayService, a RayCluster, or a workload that runs `vllm serve`",
        )
    platform = _platform(parts)
    known = {**_said(parts), **(versions or {})}
    pinned = platform_versions(platform or "rocm")
    named = [name for name in ("ray", "vllm", "ucx", "nixl", "rixl") if name in pinned]
    return View(
        platform=platform,
        versions={**{name: pinned[name] for name in named}, **known},
        assumed=[name for name in named if name not in known],
        applications=parts.applications,
        engines=parts.engines,
        clusters=parts.clusters,
        pods=parts.pods,
        serve=parts.serve,
        node=NodeFacts(),
        queries=parts.queries,
        duplicates=[twice for document in (*whole, *parts.configs) for twice in duplicates(document)],
    )


def _said(parts: Manifests) -> dict[str, str]:
    """Versions that images and `rayVersion` tell."""
    found: dict[str, str] = {}
    for pod in parts.pods:
        image = pod.container.at("image")
        for component, pattern in _IMAGES.items():
            if image is not None and image.text and (match := pattern.search(image.text)):
                found.setdefault(component, match[1])
    for cluster in parts.clusters:
        version = cluster.spec.at("rayVersion")
        if version is not None and version.text:
            found.setdefault("ray", version.text)
    return found


def _platform(parts: Manifests) -> PlatformName | None:
    """From the resources that pods ask for, the accelerators and variables that are named, and the images."""
    resources = {name for pod in parts.pods for name in pod.resources()}
    types = [str(t.value) for engine in parts.engines if (t := engine.node.at("accelerator_type")) is not None]
    images = [i.text for pod in parts.pods if (i := pod.container.at("image")) is not None and i.text]
    variables = {name for engine in parts.engines for name in engine.environment}
    if any(r.startswith("amd.com/") for r in resources) or any("amd" in t.lower() for t in types):
        return "rocm"
    if any(r.startswith("nvidia.com/") for r in resources) or any(_NVIDIA.search(t) for t in types):
        return "cuda"
    if any("rocm" in image for image in images) or any(n.startswith(("HIP_", "ROCR_", "VLLM_ROCM")) for n in variables):
        return "rocm"
    if parts.engines and all(on_cpu(engine) for engine in parts.engines):
        return "cpu"
    return None


def on_cpu(engine: Engine) -> bool:
    """Whether an engine is meant to run on a CPU: by its own words, or because no bundle has a GPU."""
    said = engine.node.at("use_cpu")
    kind = engine.node.at("accelerator_config", "kind")
    if (said is not None and said.value is True) or (kind is not None and kind.value == "cpu"):
        return True
    return bool(engine.bundles) and not any("GPU" in bundle for bundle in engine.bundles)
