"""Commands that a user watches, and what an interruption does to them: Ctrl-C, `kill`, a terminal that is closed."""

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.toolchain.console import say

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interruptible() -> None:
    """Make each of them a KeyboardInterrupt, unless it is ignored (`nohup`)."""
    for number in _INTERRUPTIONS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def run(item: str, command: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str], text: str = "") -> int:
    """Run a command, `text` on its standard input, to its end; its exit code.

    Raises KeyboardInterrupt once it has ended, when there was an interruption. It hears of one as SIGINT, and in a
    process group of its own only from here: of the terminal's and ours together Pulumi would take the second for a
    demand to leave without cleaning up. A second Ctrl-C is that demand, and is passed on.
    """
    process: subprocess.Popen[str] | None = None
    interrupted = False

    def pass_on(number: int, _frame: object) -> None:
        nonlocal interrupted
        first, interrupted = not interrupted, True
        if first:  # the next one may come while this is printed, and a print must not begin within another
            say(item, f"interrupted: waiting for {Path(command[0]).name} to clean up")
        # A closed terminal may say SIGHUP, its shell SIGHUP and SIGTERM: nobody is impatient there.
        if process and (first or number == signal.SIGINT):
            process.send_signal(signal.SIGINT)

    # Handlers, since a KeyboardInterrupt can strike anywhere, also where nobody would wait for the command any more.
    numbers = [number for number in _INTERRUPTIONS if signal.getsignal(number) is signal.default_int_handler]
    for number in numbers:
        signal.signal(number, pass_on)
    try:
        process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.PIPE, text=True, process_group=0)
        if interrupted:
            process.send_signal(signal.SIGINT)
        process.communicate(text)
    finally:
        for number in numbers:
            signal.signal(number, signal.default_int_handler)
    if interrupted:
        raise KeyboardInterrupt
    return process.returncode
