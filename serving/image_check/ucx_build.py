"""How the image's UCX was built: its commit, its options, and that its ROCm and verbs modules can be loaded."""

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from serving.image_check.python_packages import Found

# `ucx_info -d` lists the transports of devices that are there, and a build machine has none. What was compiled in are
# the modules beside the library. The third is what the RDMA gate reads GPU memory with.
_MODULES = ("libuct_ib", "libuct_rocm", "libucx_perftest_rocm")
_OPTIONS = ("--enable-mt", "--with-rocm", "--with-verbs")
_VERSION = re.compile(r"Library version: (?P<version>\S+)")
_REVISION = re.compile(r"revision (?P<revision>[0-9a-f]+)")
_CONFIGURED = re.compile(r"Configured with: (?P<options>.*)")


def check_ucx(commit: str, found: Found) -> Iterator[str]:
    """`ucx_info -v` names the commit and the options; each module loads with all that it is linked to."""
    program = shutil.which("ucx_info")
    if program is None:
        yield "no ucx_info on PATH: UCX is not in the image"
        return
    try:
        told = subprocess.run([program, "-v"], capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError) as error:
        yield f"ucx_info does not run: {error}"
        return
    version, revision, configured = (pattern.search(told) for pattern in (_VERSION, _REVISION, _CONFIGURED))
    found["ucx"] = version["version"] if version else ""
    found["ucx_commit"] = revision["revision"] if revision else ""
    if not found["ucx_commit"] or not commit.startswith(found["ucx_commit"]):
        yield f"UCX says it is of commit {found['ucx_commit'] or '(unknown)'}, {commit[:8]} is pinned"
    options = configured["options"].split() if configured else []
    for option in _OPTIONS:
        if not any(given == option or given.startswith(f"{option}=") for given in options):
            yield f"UCX was configured without {option}"
    if shutil.which("ucx_perftest") is None:
        yield "no ucx_perftest on PATH: the RDMA gate could not run"
    for module in _MODULES:
        yield from _load(Path(program).resolve().parents[1] / "lib" / "ucx", module)


def _load(folder: Path, module: str) -> Iterator[str]:
    libraries = sorted(folder.glob(f"{module}.so*"))
    if not libraries:
        yield f"UCX has no {module}.so in {folder}: it was built without it"
        return
    try:
        ctypes.CDLL(str(libraries[0]))
    except OSError as error:
        yield f"UCX's {module} cannot be loaded: {error}"
