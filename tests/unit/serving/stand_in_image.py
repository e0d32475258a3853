"""A folder that looks like an engine image's Python and UCX: stand-ins for torch, Triton, vLLM, Ray and RIXL."""

import os
import shutil
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

from serving.versions import platform_versions
from tests.shell import ROOT

ROCM = platform_versions("rocm")
RIXL = """
class nixl_agent_config:
    def __init__(self, backends): self.backends = backends
class nixl_agent:
    def __init__(self, name, config): assert config.backends == ["UCX"]
    def get_plugin_list(self): return ["POSIX", "UCX"]
"""
_UCX_INFO = """#!/bin/sh
echo "# Library version: 1.19.0"
echo "# Git branch '', revision {revision}"
echo "# Configured with: --prefix=/usr/local/ucx {options}"
"""


class StandInImage:
    """An image in `folder` in which everything is as pinned. Its methods take something away, or exchange it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.packages, self.ucx = folder, folder / "packages", folder / "ucx"
        self.module("torch/__init__.py", f"class version: hip = '{ROCM['rocm']}.51831'")
        self.module("triton/__init__.py", f"__version__ = '3.4.0+git{ROCM['triton']}'")
        self.module("vllm/__init__.py", "")
        self.module("vllm/_rocm_C.py", "")
        self.module("rixl/__init__.py", "")
        self.module("rixl/_api.py", RIXL)
        for name, version in (("ray", ROCM["ray"]), ("vllm", ROCM["vllm"]), ("rixl", "0.8")):
            self.distribution(name, version)
        self.ucx_info()
        (self.ucx / "bin" / "ucx_perftest").write_text("#!/bin/sh\n")
        (self.ucx / "bin" / "ucx_perftest").chmod(0o755)
        modules = self.ucx / "lib" / "ucx"
        modules.mkdir(parents=True)
        library = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
        real = next(line.split()[-1] for line in library.splitlines() if f"{find_library('m')} " in line)
        for name in ("libuct_ib.so.0", "libuct_rocm.so.0", "libucx_perftest_rocm.so.0"):
            shutil.copy(real, modules / name)

    def module(self, path: str, text: str) -> None:
        file = self.packages / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def distribution(self, name: str, version: str) -> None:
        for old in self.packages.glob(f"{name}-*.dist-info"):
            shutil.rmtree(old)
        self.module(
            f"{name}-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )

    def ucx_info(
        self, revision: str = ROCM["ucx"][:7], options: str = "--enable-mt --with-verbs --with-rocm=/opt/rocm"
    ) -> None:
        program = self.ucx / "bin" / "ucx_info"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(_UCX_INFO.format(revision=revision, options=options))
        program.chmod(0o755)

    def check(self, version_set: str = "rocm", **variables: str) -> "subprocess.CompletedProcess[str]":
        """What the last stage of the image's build does."""
        command = [sys.executable, "-m", "serving.image_check", version_set, "--output", self.folder / "pd-stack.json"]
        env = {
            **os.environ,
            "PYTHONPATH": str(self.packages),
            "PATH": f"{self.ucx / 'bin'}:{os.environ['PATH']}",
            **variables,
        }
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
