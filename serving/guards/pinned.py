"""Whether what runs today can be had again tomorrow, and whether it was built for these GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from serving.guards.guard import Found, guard
from serving.guards.located import Located
from serving.guards.view import Engine, View

_FLOATING = re.compile(r"(^|[-_.])(latest|nightly|main|master|dev|edge|stable)($|[-_.])")
_COMMIT = re.compile(r"(^|[-_.])[0-9a-f]{7,40}($|[-_.])")  # `nightly-0123abc`: such a tag is made once
_CUDA_IMAGE = re.compile(
    r"-cu1\d\d\b|[-_:]cuda|(^|/)rayproject/ray[^:]*:[^@]*-gpu\b|(^|/)(rayproject|anyscale)/ray-llm[:@]|^nvcr\.io/"
)
_PYTHON = re.compile(r"(?:^|/)ray(?:-llm|-ml)?:[^@]*-py3(\d+)\b")
_ROCM_PYTHON = "12"  # wheels.vllm.ai/rocm has vLLM for cp312 only
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def _images(view: View) -> Iterator[tuple[Located, str, str]]:
    """Images of engines and Ray's pods that are written out, with their tag and digest; empty for none."""
    for pod in view.pods:
        image = pod.container.at("image")
        text = image.text if image is not None else None
        # Of a template, or a word that something else replaces: repositories are in lower case.
        if image is None or not text or pod.kind == "other" or re.search(r"[${<]|^[^:@]*[A-Z]", text):
            continue
        name, _, digest = text.partition("@")
        yield image, name.rsplit("/", 1)[-1].partition(":")[2], digest


def _floats(tag: str) -> bool:
    return not tag or bool(_FLOATING.search(tag) and not _COMMIT.search(tag))


@guard(
    "floating-image",
    "warning",
    what="An engine's image has a tag that moves, or none",
    silently="a pod that restarts runs another vLLM than its peers: the KV handshake fails, or numbers change",
    fix="name the image by its digest: `vllm/vllm-openai-rocm@sha256:...`",
    source="kubernetes docs, Images; vllm 0.18 nixl_connector.py (the handshake compares vLLM's version)",
)
def floating_image(view: View) -> Iterator[Found]:
    for image, tag, digest in _images(view):
        if not digest and _floats(tag):
            yield image, f"tag {tag}" if tag else "no tag is `latest`"


@guard(
    "image-by-tag",
    "note",
    what="An engine's image is named by its tag and not by its digest",
    silently="whoever may push can put other programs under the tag, and the next node that pulls it runs those",
    fix="add the digest behind the tag, as in `image:v1@sha256:...`",
    source="kubernetes docs, Images",
)
def image_by_tag(view: View) -> Iterator[Found]:
    for image, tag, digest in _images(view):
        if not digest and not _floats(tag):
            yield image, f"tag {tag}"


def _hub_repository(engine: Engine) -> Located | None:
    """The model where it comes from the hub at start."""
    model, offline = engine.model, engine.variable("HF_HUB_OFFLINE")
    there = model is not None and model.text and _HUB.fullmatch(model.text)
    return model if there and offline not in ("1", "true", "True") else None


def _pinned(engine: Engine, name: str) -> bool:
    said = engine.argument(name)
    return said is not None and said.value not in (None, "", "main")


@guard(
    "model-not-pinned",
    "note",
    what="The model comes from the hub without a `revision`",
    silently="a replica that starts after the repository has changed serves other weights than the others",
    fix="write the commit of the model's repository: `revision: <40 characters>`",
    source="huggingface_hub docs, revision (default: main); vllm 0.18 engine/arg_utils.py",
)
def model_not_pinned(view: View) -> Iterator[Found]:
    for engine in view.engines:
        model, how = _hub_repository(engine), engine.argument("load_format")
        made_up = how is not None and how.value == "dummy"
        if model is not None and not made_up and not _pinned(engine, "revision"):
            yield model, f"{model.value} at main"


@guard(
    "remote-code-not-pinned",
    "warning",
    what="The engine runs code out of the model's repository, whatever it is that day",
    silently="whoever can push to that repository runs code on the nodes, with the engine's token and network",
    fix="write `revision` and `code_revision`, or leave trust_remote_code away: most models need none",
    source="vllm 0.18 engine/arg_utils.py trust_remote_code, code_revision; transformers docs, custom models",
)
def remote_code_not_pinned(view: View) -> Iterator[Found]:
    for engine in view.engines:
        said = engine.argument("trust_remote_code")
        if said is None or str(said.value).lower() != "true" or _hub_repository(engine) is None:
            continue
        if not _pinned(engine, "code_revision") and not _pinned(engine, "revision"):
            yield said, "trust_remote_code without a revision"


@guard(
    "image-of-other-gpu",
    "error",
    what="A pod asks for GPUs of one maker with an image that was built for another's",
    silently="vLLM finds no GPU in it and ends, or takes itself for one of a CPU",
    fix="on AMD take `vllm/vllm-openai-rocm` or an image with Ray and the ROCm build; rayproject/ray-llm is CUDA only",
    source="vllm docs, Using Docker; ray docs, image tags (-cu is CUDA); ray 2.55 has no ROCm extra",
)
def image_of_other_gpu(view: View) -> Iterator[Found]:
    for pod in view.pods:
        image = pod.container.at("image")
        text = image.text if image is not None else None
        amd, nvidia = (any(n.startswith(v) for n in pod.resources()) for v in ("amd.com/gpu", "nvidia.com/"))
        if image is None or not text or pod.kind == "other" or amd == nvidia:
            continue
        rocm = bool(re.search(r"(^|/)rocm/|[-_:.]rocm[^/]*$|(^|/)rocm[^/]*$", text))
        cuda = bool(_CUDA_IMAGE.search(text) or re.search(r"(^|/)vllm/vllm-openai(:|@|$)", text)) and not rocm
        if (amd and cuda) or (nvidia and rocm):
            yield image, f"{text} for {'AMD' if amd else 'NVIDIA'} GPUs"


@guard(
    "image-of-other-python",
    "warning",
    what="A Ray image for AMD GPUs has another Python than the ROCm builds of vLLM",
    silently="pip finds no ROCm wheel for it and takes the CUDA one, which sees no GPU",
    fix="take an image with `-py312`",
    source="wheels.vllm.ai/rocm (cp312 wheels only); vllm docs, installation on ROCm",
)
def image_of_other_python(view: View) -> Iterator[Found]:
    for pod in view.pods:
        image = pod.container.at("image")
        found = _PYTHON.search(image.text) if image is not None and image.text else None
        amd = "amd.com/gpu" in pod.resources()
        if image is not None and found and amd and found[1] != _ROCM_PYTHON:
            yield image, f"Python 3.{found[1]}"
