"""The Python side of an image: interpreter, distributions, torch's ROCm, Triton, transfer library, preloaded ones."""

import ctypes
import importlib
import os
import platform
from collections.abc import Iterator
from importlib import metadata, util
from typing import Any

from serving.versions import versions

Found = dict[str, str]
# Whatever the transfer library raises when it was built without its UCX plugin or cannot load it (a KeyError 'UCX' from
# the Python side, an error of its own from C++), the image is no good.
_ANY = Exception


def check_interpreter(found: Found) -> Iterator[str]:
    """Another Python takes other wheels, silently: of vLLM the one for CUDA."""
    found["python"] = platform.python_version()
    wanted = versions()["python"]["version"]
    if not found["python"].startswith(f"{wanted}."):
        yield f"python is {found['python']}, {wanted} is pinned: another Python takes another vLLM without a word"


def check_distributions(version_set: dict[str, Any], found: Found) -> Iterator[str]:
    """Those that versions.toml pins by a version: `distribution` maps a component to its name on the index."""
    names: dict[str, str] = version_set.get("distribution", {})
    for component in ("ray", "vllm", "nixl", "torch"):
        if wanted := version_set.get(component):
            name = names.get(component, component)
            installed = found[component] = _version(name)
            # A pin without local part takes any build of that version.
            same = installed == wanted or ("+" not in wanted and installed.partition("+")[0] == wanted)
            if not same:
                yield f"{name} is {installed or 'not installed'}, {wanted} is pinned"


def check_rocm(version_set: dict[str, Any], found: Found) -> Iterator[str]:
    """torch and vLLM built for ROCm, and the pinned Triton: pip replaces it when it resolves anything after it."""
    torch = importlib.import_module("torch")
    hip = found["hip"] = str(torch.version.hip or "")
    if not hip.startswith(f"{version_set['rocm']}."):
        yield f"torch was built for ROCm {hip or '(none: torch.version.hip is empty)'}, {version_set['rocm']} is pinned"
    if util.find_spec("vllm._rocm_C") is None:
        yield "vLLM has no vllm._rocm_C: it was not built for ROCm"
    installed = found["triton"] = str(importlib.import_module("triton").__version__)
    if version_set["triton"] not in installed:
        yield f"triton is {installed}, commit {version_set['triton']} is pinned: something replaced it"


def check_transfer(version_set: dict[str, Any], found: Found) -> Iterator[str]:
    """The module that vLLM imports is there, and its UCX plugin loads."""
    name = version_set["transfer_module"]
    found["transfer_module"] = name
    try:
        api = importlib.import_module(f"{name}._api")
    except ImportError as error:
        yield f"{name} cannot be imported: {error}"
        return
    found[name] = found.get(name) or _version(name)
    try:
        agent = api.nixl_agent("image-check", api.nixl_agent_config(backends=["UCX"]))
        plugins = agent.get_plugin_list()
    except _ANY as error:
        yield f"{name} has no usable UCX plugin: {type(error).__name__}: {error}"
        return
    if "UCX" not in plugins:
        yield f"{name} lists the plugins {', '.join(plugins) or '(none)'} and not UCX"


def check_preloaded() -> Iterator[str]:
    """What LD_PRELOAD names can be loaded; ld.so goes on without it, and vLLM's CPU engine then does not start."""
    for library in filter(None, os.environ.get("LD_PRELOAD", "").split(":")):
        try:
            ctypes.CDLL(library)
        except OSError as error:
            yield f"LD_PRELOAD names {library}, which cannot be loaded: {error}"


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
