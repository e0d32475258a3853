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
# Whatever a package raises when it is imported or asked, the image is no good, and the checks behind it have lines of
# their own to say: ImportError without it, OSError without a library that it loads, AttributeError from another package
# of its name, KeyError 'UCX' or an error of C++ from a transfer library without its UCX plugin.
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
    found["hip"] = found["triton"] = ""
    try:
        found["hip"] = str(importlib.import_module("torch").version.hip or "")
    except _ANY as error:
        yield _unusable("torch", error)
    else:
        if not found["hip"].startswith(f"{version_set['rocm']}."):
            built = found["hip"] or "(none: torch.version.hip is empty)"
            yield f"torch was built for ROCm {built}, {version_set['rocm']} is pinned"
    try:
        extension = util.find_spec("vllm._rocm_C")  # it imports vllm itself
    except _ANY as error:
        yield _unusable("vllm", error)
    else:
        if extension is None:
            yield "vLLM has no vllm._rocm_C: it was not built for ROCm"
    try:
        found["triton"] = str(importlib.import_module("triton").__version__)
    except _ANY as error:
        yield _unusable("triton", error)
    else:
        if version_set["triton"] not in found["triton"]:
            yield f"triton is {found['triton']}, commit {version_set['triton']} is pinned: something replaced it"


def check_transfer(version_set: dict[str, Any], found: Found) -> Iterator[str]:
    """The module that vLLM imports is there, and its UCX plugin loads."""
    name = version_set["transfer_module"]
    found["transfer_module"] = name
    try:
        api = importlib.import_module(f"{name}._api")
    except _ANY as error:
        yield _unusable(name, error)
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


def _unusable(name: str, error: Exception) -> str:
    return f"{name} cannot be imported: {type(error).__name__}: {error}"


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
