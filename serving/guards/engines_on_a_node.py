"""Engines that share a node, and what NIXL needs to be in their image."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from serving.guards.guard import Found, guard
from serving.guards.transfer import by_nixl, has_callback, is_true, known, may_meet, most_replicas
from serving.guards.view import Engine, View


def _neighbours(view: View) -> Iterator[Engine]:
    """Engines under Ray of which another may be on the same node, and for which no code sets what must differ."""
    for application in view.applications:
        for engine in application.engines:
            if not has_callback(engine) and any(may_meet(view, engine, other) for other in application.engines):
                yield engine


@guard(
    "engines-share-tcpstore-port",
    "warning",
    what="Engines that start together on one node look for the port of their TCPStore from the same number up",
    silently="as root all take port 100: one dies with EADDRINUSE, Serve starts it again, and the app looks healthy",
    fix="let a callback set VLLM_DP_MASTER_PORT, another one for each replica",
    source="vllm 0.25 v1/executor/ray_executor_v2.py _select_tcpstore_port (0 + 100); vllm#53666; run on 2 x H200",
    holds={"vllm": ">=0.25,<0.26"},
)
def engines_share_tcpstore_port(view: View) -> Iterator[Found]:
    for engine in _neighbours(view) if known(view, "vllm") else ():
        if engine.integer("data_parallel_size", 1) == 1:
            yield engine.node, f"{engine.role}, {most_replicas(engine)} replicas"


@guard(
    "engines-share-compile-cache",
    "note",
    what="Engines that start together on one node compile into the same folders",
    silently="one loads what another is writing; on two H200 an engine then failed with `invalid argument`",
    fix="let a callback set VLLM_CACHE_ROOT, TORCHINDUCTOR_CACHE_DIR and TRITON_CACHE_DIR for each replica",
    source="run on 2 x H200 with vLLM 0.25 and Ray 2.57; which of the three matters was not isolated",
)
def engines_share_compile_cache(view: View) -> Iterator[Found]:
    for engine in _neighbours(view):
        compiles = not is_true(engine.argument("enforce_eager"))
        if compiles and "VLLM_DISABLE_COMPILE_CACHE" not in engine.environment:
            yield engine.node, f"{engine.role}, {most_replicas(engine)} replicas"


@guard(
    "nixl-not-in-image",
    "error",
    what="NIXL with an image of vLLM for ROCm that has no transfer library",
    silently="vLLM logs that NIXL is not available, goes on loading weights, and fails when it makes the connector",
    fix="build an image with RIXL (docker/ does), or take a later one that has it",
    source="vllm#41637, #37941, fixed by #41634: vllm-openai-rocm up to 0.20.1 lacks rixl",
)
def nixl_not_in_image(view: View) -> Iterator[Found]:
    for engine in view.moving():
        image = engine.pod.container.at("image") if engine.pod is not None else None
        match = re.search(r"vllm/vllm-openai-rocm:v(\d+\.\d+\.\d+)", image.text) if image and image.text else None
        if image is None or match is None or Version(match[1]) > Version("0.20.1") or not by_nixl(engine):
            continue
        assert engine.pod is not None  # noqa: S101
        script = " ".join(str(at.value) for key in ("command", "args") if (at := engine.pod.container.at(key)))
        if not re.search(r"pip3? install|rixl", script, re.IGNORECASE) and not engine.pod.node.at("initContainers"):
            yield image, image.text or ""
