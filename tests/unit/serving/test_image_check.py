"""The last stage of an image's build: it writes what is in the image, or names what is missing or another."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from stand_in_image import RIXL, ROCM, StandInImage

CUDA = ROCM["vllm"].partition("+")[0]
# What ctypes and extension modules raise, more or less.
NO_LIBRARY = "raise OSError('libx.so.1: cannot open shared object file')"


@pytest.fixture
def image(tmp_path: Path) -> StandInImage:
    return StandInImage(tmp_path)


def test_an_image_that_is_as_pinned_says_what_is_in_it(image: StandInImage) -> None:
    done = image.check()
    assert done.returncode == 0, done.stderr
    told = json.loads((image.folder / "pd-stack.json").read_text())
    assert told["version_set"] == "rocm"
    assert told["pinned"]["ucx"] == ROCM["ucx"]
    found = told["found"]
    assert found["ray"] == ROCM["ray"]
    assert found["vllm"] == ROCM["vllm"]
    assert found["triton"].endswith(ROCM["triton"])
    assert found["hip"].startswith(ROCM["rocm"])
    assert ROCM["ucx"].startswith(found["ucx_commit"])
    assert found["transfer_module"] == "rixl"
    assert found["python"].startswith("3.12.")


@pytest.mark.parametrize(
    ("break_it", "line"),
    [
        (lambda it: it.distribution("ray", "2.54.0"), f"ray is 2.54.0, {ROCM['ray']} is pinned"),
        # PyPI's, for CUDA: what another Python or a missing index leads to.
        (lambda it: it.distribution("vllm", CUDA), f"vllm is {CUDA}, {ROCM['vllm']} is pinned"),
        (lambda it: it.module("torch/__init__.py", "class version: hip = None"), "torch.version.hip is empty"),
        (lambda it: it.module("torch/__init__.py", "class version: hip = '6.4.1'"), "torch was built for ROCm 6.4.1"),
        (lambda it: it.module("triton/__init__.py", "__version__ = '3.5.1'"), "triton is 3.5.1, commit"),
        (lambda it: (it.packages / "vllm" / "_rocm_C.py").unlink(), "it was not built for ROCm"),
        (lambda it: (it.packages / "rixl" / "_api.py").unlink(), "rixl cannot be imported"),
        (
            lambda it: it.module(
                "rixl/_api.py",
                "class nixl_agent_config:\n def __init__(self, backends): 0\ndef nixl_agent(*_): raise KeyError('UCX')",
            ),
            "rixl has no usable UCX plugin: KeyError: 'UCX'",
        ),
        (
            lambda it: it.module("rixl/_api.py", RIXL.replace('"POSIX", "UCX"', '"POSIX", "GDS"')),
            "rixl lists the plugins POSIX, GDS and not UCX",
        ),
        (lambda it: it.module("rixl/_api.py", NO_LIBRARY), "rixl cannot be imported: OSError: libx.so.1: cannot open"),
        (lambda it: it.module("torch/__init__.py", NO_LIBRARY), "torch cannot be imported: OSError: libx.so.1"),
        (lambda it: it.module("torch/__init__.py", ""), "torch cannot be imported: AttributeError"),
        (lambda it: it.module("triton/__init__.py", NO_LIBRARY), "triton cannot be imported: OSError: libx.so.1"),
        (lambda it: it.module("vllm/__init__.py", NO_LIBRARY), "vllm cannot be imported: OSError: libx.so.1"),
        (lambda it: it.ucx_info(revision="1234567"), "UCX says it is of commit 1234567"),
        (lambda it: it.ucx_info(revision=""), "UCX says it is of commit (unknown)"),
        (
            lambda it: it.ucx_info(options="--with-verbs --with-rocm=/opt/rocm"),
            "UCX was configured without --enable-mt",
        ),
        (lambda it: it.ucx_info(options="--enable-mt --with-verbs"), "UCX was configured without --with-rocm"),
        (lambda it: (it.ucx / "lib/ucx/libuct_rocm.so.0").unlink(), "UCX has no libuct_rocm.so"),
        (lambda it: (it.ucx / "lib/ucx/libuct_ib.so.0").write_text("no library"), "libuct_ib cannot be loaded"),
        (lambda it: (it.ucx / "bin/ucx_info").unlink(), "no ucx_info on PATH"),
        (lambda it: (it.ucx / "bin/ucx_perftest").unlink(), "no ucx_perftest on PATH"),
        (lambda it: (it.ucx / "lib/ucx/libucx_perftest_rocm.so.0").unlink(), "UCX has no libucx_perftest_rocm.so"),
    ],
)
def test_a_piece_that_is_missing_or_another_fails_the_build(
    image: StandInImage, break_it: Callable[[StandInImage], object], line: str
) -> None:
    break_it(image)
    done = image.check()
    assert done.returncode == 1
    assert line in done.stderr
    assert "Traceback" not in done.stderr
    assert not (image.folder / "pd-stack.json").exists()


def test_a_preloaded_library_that_is_not_there_is_named(image: StandInImage) -> None:
    assert "LD_PRELOAD names libnone.so" in image.check(LD_PRELOAD="libnone.so").stderr


def test_every_fault_is_named_and_not_only_the_first(image: StandInImage) -> None:
    image.distribution("ray", "2.54.0")
    image.ucx_info(revision="1234567")
    assert image.check().stderr.count("error: ") == 2


def test_an_image_without_any_of_the_packages_has_a_line_for_each(image: StandInImage) -> None:
    for name in ("torch", "triton", "vllm", "rixl"):
        shutil.rmtree(image.packages / name)
    image.ucx_info(revision="1234567")
    done = image.check()
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    for name in ("torch", "triton", "vllm", "rixl"):
        assert f"error: {name} cannot be imported: ModuleNotFoundError" in done.stderr
    assert "error: UCX says it is of commit 1234567" in done.stderr


def test_another_python_is_refused(image: StandInImage, monkeypatch: pytest.MonkeyPatch) -> None:
    from serving.image_check import python_packages

    monkeypatch.setattr(python_packages.platform, "python_version", lambda: "3.11.9")
    found: dict[str, str] = {}
    (line,) = python_packages.check_interpreter(found)
    assert line.startswith("python is 3.11.9, 3.12 is pinned")


def test_an_unknown_version_set_is_one_line(image: StandInImage) -> None:
    done = image.check("rocm8")
    assert done.returncode == 1
    assert "versions.toml has no [platform.rocm8]" in done.stderr
