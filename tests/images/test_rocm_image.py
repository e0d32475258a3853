"""The ROCm image, built for real with BuildKit. Stand-ins: ROCm, UCX, RIXL, Triton, vLLM's index, both base images."""

import json
import re
from pathlib import Path

import pytest

from serving.versions import platform_versions, versions
from tests.images.conftest import Build
from tests.images.stand_in_sources import TRITON
from tools.image_builder.oci_layout import read_image, unpack

ROCM = platform_versions("rocm")
LIMIT = int(versions()["image"]["build"]["layer_limit_mb"]) * 10**6


@pytest.fixture(scope="module")
def root(build: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file system of the built image."""
    root = tmp_path_factory.mktemp("rocm") / "root"
    unpack(build.image("rocm"), root)
    return root


def test_it_says_what_is_in_it(root: Path) -> None:
    told = json.loads((root / "etc" / "pd-stack.json").read_text())
    found = told["found"]
    assert found["ray"] == ROCM["ray"]
    assert found["vllm"] == ROCM["vllm"]
    assert found["triton"] == TRITON
    assert ROCM["ucx"].startswith(found["ucx_commit"])
    assert found["transfer_module"] == "rixl"
    assert told["pinned"]["rixl"] == ROCM["rixl"]


def test_rocm_is_at_its_place_with_kernels_for_this_gpu_only(root: Path) -> None:
    rocm = root / "opt" / "rocm"
    assert (rocm / "bin" / "hipcc").exists()
    kernels = {path.name for path in (rocm / "lib" / "kernels").iterdir()}
    assert kernels == {f"a_{versions()['image']['build']['gpu_target']}.co"}


def test_it_runs_as_nobody_special_and_no_layer_is_too_large(build: Build) -> None:
    config, layers = read_image(build.image("rocm"))
    assert config["config"]["User"] == "1000:1000"
    env = dict(entry.split("=", 1) for entry in config["config"]["Env"])
    assert env["PATH"].startswith("/opt/venv/bin:")
    assert "/usr/local/ucx/lib" in env["LD_LIBRARY_PATH"]
    assert max(size for _, size in layers) < LIMIT


def test_no_debug_tool_is_in_it(root: Path) -> None:
    assert not any((root / "usr/bin" / name).exists() for name in ("gdb", "strace", "ib_write_bw", "gcc-12-dbg"))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"VLLM_VERSION": "0.17.1+rocm700"}, "vllm"),  # the index has another: nothing is taken from elsewhere
        ({"LAYER_LIMIT_MB": "1"}, r"error: /environment/venv\S* has [\d,]+ bytes"),
    ],
)
def test_another_version_or_a_layer_too_large_fails_the_build(build: Build, change: dict[str, str], line: str) -> None:
    done, layout = build.run("rocm", arguments=change)
    assert done.returncode != 0
    assert re.search(line, done.stderr), done.stderr[-3000:]
    assert not (layout / "index.json").exists()


@pytest.mark.parametrize(
    ("stage", "file", "content", "line"),
    [
        ("ucx", "REVISION", "1234567", "error: UCX says it is of commit 1234567"),
        ("triton", "VERSION", "3.4+git0000000", "error: triton is 3.4+git0000000"),
        ("rixl", "meson.build", "project('none')\n", None),  # no plugin is built, so none is found to be packed
    ],
)
def test_a_piece_of_another_commit_or_without_its_plugin_fails_the_build(
    build: Build, tmp_path: Path, stage: str, file: str, content: str, line: str | None
) -> None:
    from tests.images import stand_in_sources

    known = {"ucx": {"REVISION": ROCM["ucx"][:7]}, "triton": {"VERSION": TRITON}}
    place = stand_in_sources.source(stage, tmp_path, **{**known.get(stage, {}), file: content})
    done, layout = build.run("rocm", contexts={f"{stage}-source": str(place)})
    assert done.returncode != 0
    assert line is None or line in done.stderr, done.stderr[-3000:]
    assert not (layout / "index.json").exists()
