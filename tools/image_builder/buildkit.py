"""`BuildKit`: buildkitd as a process of ours for as long as it is needed, and buildx in front of it.

Its state is in a folder of the cache, which two runs must not share: the second waits. With `runc`, so as root.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.toolchain import go_install, go_programs, image_builders
from tools.toolchain.cache import cache_root, exclusive
from tools.toolchain.console import say
from tools.toolchain.errors import ToolchainError
from tools.toolchain.versions import ROOT

ITEM = "images"
_BAKE_FILE = "docker/docker-bake.hcl"
_BUILDER = "pd-mi325x"
# Reserved, to leave free, at most; of these the last matters. All images but cpu take 7 GB, and cpu alone 30.
_KEPT_MB = "2000,2000,12000"
_START_S = 60.0
_END_S = 30.0


class BuildKit:
    """A running buildkitd. Made by `running()`."""

    def __init__(self, folder: Path, socket: Path, programs: Mapping[str, Path]) -> None:
        self._folder, self._socket, self._programs = folder, socket, programs

    def environment(self) -> dict[str, str]:
        """buildx keeps its builders in a folder of ours, not in the home of whoever runs it."""
        return {**os.environ, "BUILDX_CONFIG": str(self._folder / "buildx")}

    def bake(self, target: str, *, arguments: Path, layout: Path) -> "subprocess.CompletedProcess[str]":
        """`buildx bake` of one target into `layout`, which is not there yet. `arguments`: the second bake file.

        The answer is whatever it is; nothing is raised.
        """
        command: list[str | Path] = [self._programs["buildx"], "bake", "--builder", _BUILDER, "--progress", "plain"]
        command += ["--allow", "fs=*", "--file", _BAKE_FILE, "--file", arguments]
        command += ["--set", f"{target}.output=type=oci,tar=false,compression=uncompressed,dest={layout}", target]
        return subprocess.run(command, cwd=ROOT, env=self.environment(), capture_output=True, text=True, check=False)

    def create_builder(self) -> None:
        """Make buildx know this buildkitd."""
        command = [self._programs["buildx"], "create", "--name", _BUILDER, "--driver", "remote"]
        subprocess.run([*command, f"unix://{self._socket}"], env=self.environment(), capture_output=True, check=True)


@contextlib.contextmanager
def running() -> Iterator[BuildKit]:
    """Start buildkitd, wait until it answers, and end it. Raises ToolchainError where it cannot run."""
    image_builders.ensure()
    programs = {program.name: go_install.ensure(program) for program in go_programs.image_builders()}
    runc = shutil.which("runc")
    assert runc is not None  # noqa: S101  made sure of above
    folder = cache_root() / "buildkit"
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(ITEM, "buildkit"):
        socket = folder / "buildkitd.sock"
        socket.unlink(missing_ok=True)
        shutil.rmtree(folder / "buildx", ignore_errors=True)
        log = cache_root() / "log" / "buildkitd.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        command: list[str | Path] = [programs["buildkitd"], "--root", folder / "root", "--addr", f"unix://{socket}"]
        command += ["--oci-worker=true", "--oci-worker-binary", runc, "--containerd-worker=false"]
        command += ["--oci-worker-net=host", "--oci-worker-snapshotter=overlayfs"]
        command += ["--oci-worker-gc=true", f"--oci-worker-gc-keepstorage={_KEPT_MB}"]
        with log.open("w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, process_group=0)
        try:
            _wait_ready(process, programs["buildctl"], socket, log)
            built = BuildKit(folder, socket, programs)
            built.create_builder()
            yield built
        finally:
            _end(process)


def _wait_ready(process: "subprocess.Popen[bytes]", buildctl: Path, socket: Path, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    command = [buildctl, "--addr", f"unix://{socket}", "debug", "workers"]
    while subprocess.run(command, capture_output=True, check=False).returncode:
        if process.poll() is not None or time.monotonic() > deadline:
            raise ToolchainError(ITEM, "buildkitd does not start", f"see {log}")
        time.sleep(0.2)
    say(ITEM, "buildkitd runs")


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
