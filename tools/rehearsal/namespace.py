"""A network and process namespace without a name: when its first process ends, the kernel ends and removes the rest.

Works as root, and without it where unprivileged user namespaces are allowed. Entered with nsenter: `ip netns exec`
would remount /sys, and needs a name that outlives a crash.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from tools.toolchain.errors import ToolchainError

ITEM = "simulated cluster"
NODE_ADDRESS = "10.199.0.1"
NODE_RANGE = "10.199.0.0/16"
POD_RANGE = "10.245.0.0/16"
SERVICE_RANGE = "10.96.0.0/16"
_END_S = 5.0  # chosen because `cat` ends at once; only a machine that hardly runs takes longer
_PROGRAMS = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2", "openssl": "openssl"}

# `local` routes are Linux's AnyIP: every address of these ranges is one of this namespace's own, so one process that
# listens on 0.0.0.0 answers as each pod. The last command waits for its owner: `cat` ends with the pipe.
_SETUP = " && ".join(
    [
        "ip link set lo up",
        f"ip address add {NODE_ADDRESS}/32 dev lo",
        *(f"ip route add local {addresses} dev lo" for addresses in (NODE_RANGE, POD_RANGE, SERVICE_RANGE)),
        "echo ready",
        "exec cat",
    ]
)


class Namespace:
    """Lives until `close()`, or until the process that made it is gone, however that one ended."""

    def __init__(self) -> None:
        check_host()
        rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        held, self._lifeline = os.pipe()  # the only other end: closed with this process at the latest
        said, to_say = os.pipe()
        # A new session, so that Ctrl-C reaches the owner alone, who then ends things in order.
        self._holder = subprocess.Popen(
            ["unshare", *rights, "--net", "--pid", "--fork", "--kill-child", "sh", "-c", _SETUP],
            stdin=held,
            stdout=to_say,
            stderr=to_say,
            env={**os.environ, "LC_ALL": "C"},  # some shells complain of a locale that is not installed
            start_new_session=True,
        )
        os.close(held)
        os.close(to_say)
        lines: list[str] = []
        with os.fdopen(said) as output:  # it ends when the setup has failed
            while lines[-1:] != ["ready"] and (line := output.readline()):
                lines.append(line.strip())
        if lines[-1:] != ["ready"]:
            self.close()
            raise ToolchainError(
                ITEM,
                f"cannot make a network namespace ({(lines or ['unshare failed'])[-1]})",
                "run as root, or allow unprivileged user namespaces",
            )

    @property
    def pid(self) -> int:
        """The process whose /proc entry names the namespaces."""
        return self._holder.pid

    def enter(self, command: Sequence[str]) -> list[str]:
        """`command` in this network, for a program that outlives it or wants to see this machine's processes."""
        return [*self._nsenter(), "--", *command]

    def contain(self, command: Sequence[str]) -> list[str]:
        """`command` in this network and among its processes: it cannot outlive the namespace."""
        return [*self._nsenter(), f"--pid=/proc/{self.pid}/ns/pid_for_children", "--", *command]

    def close(self) -> None:
        """End every process of it. Repeating it does nothing."""
        if self._holder.poll() is None:
            os.close(self._lifeline)
            try:
                self._holder.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._holder.kill()  # `--kill-child` takes the first process along, and the kernel all others
                self._holder.wait()

    def _nsenter(self) -> list[str]:
        here = f"/proc/{self.pid}/ns"
        # The caller's user is root in there already; setgroups, which nsenter would do, is not allowed without root.
        rights = [] if os.geteuid() == 0 else [f"--user={here}/user", "--preserve-credentials"]
        return ["nsenter", *rights, f"--net={here}/net"]


def check_host() -> None:
    """Raise ToolchainError with the first thing this machine lacks."""
    if sys.platform != "linux":
        raise ToolchainError(
            ITEM, f"needs Linux namespaces, this is {sys.platform}", "run it on Linux or in a Linux VM"
        )
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            raise ToolchainError(ITEM, f"`{program}` is not on PATH", f"install the system package {package}")
