"""One process of the simulated cluster: started in the namespace, logged to a file, ended with what it started."""

import contextlib
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from tools.rehearsal.namespace import ITEM
from tools.toolchain.errors import ToolchainError
from tools.toolchain.process import last_words

_GRACE_S = 3.0  # SIGTERM to SIGKILL; the API server waits for open watches, which nobody needs any more


class Component:
    """`command` is complete, with the words that enter the namespace in front."""

    def __init__(self, name: str, command: Sequence[str], log: Path, env: Mapping[str, str]) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._env = dict(env)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, pass_fds: Sequence[int] = ()) -> None:
        """Start it, its output behind what the log holds already. Running already: nothing happens."""
        if self.running:
            return
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=pass_fds,
                start_new_session=True,
            )

    def stop(self, kill: bool = False) -> None:
        """SIGTERM and, after a grace period, SIGKILL; with `kill` SIGKILL at once, as a crash would be."""
        if self._process is None or self._process.poll() is not None:
            return
        processes = _below(self._process)
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill() if kill else process.terminate()
        _, alive = psutil.wait_procs(processes, timeout=_GRACE_S)
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if not processes:
            self._process.kill()  # it has not got as far as its child, and may never
        self._process.wait()

    def check(self) -> None:
        """Raise ToolchainError when it has ended."""
        if self.running:
            return
        raise ToolchainError(ITEM, f"{self.name} ended: {last_words(self.log)}", f"see {self.log}")


def _below(nsenter: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    """The processes below nsenter, which only waits for the first of them and ends with it."""
    deadline = time.monotonic() + _GRACE_S
    while time.monotonic() < deadline and nsenter.poll() is None:
        with contextlib.suppress(psutil.NoSuchProcess):
            if children := psutil.Process(nsenter.pid).children(recursive=True):
                return children
        time.sleep(0.01)  # it has only just been started
    return []
