"""Commands that a user watches, and what an interruption does to them: Ctrl-C, `kill`, a terminal that is closed."""

import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tools.toolchain.console import say

_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interruptible() -> None:
    """Make each of them a KeyboardInterrupt, unless it is ignored (`nohup`)."""
    for number in _INTERRUPTIONS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


@contextmanager
def attending(item: str, name: str) -> Iterator[Callable[["subprocess.Popen[str]"], None]]:
    """Within this block interruptions are for a process, which is to be named with the function that this gives.

    Raises KeyboardInterrupt at the end of the block, when there was an interruption: wait for the process in it. It
    hears of one as SIGINT, and only from here when it has a process group of its own: of the terminal's and ours
    together Pulumi would take the second for a demand to leave without cleaning up. A second Ctrl-C is that demand,
    and is passed on.
    """
    process: subprocess.Popen[str] | None = None
    interrupted = False

    def attend(started: "subprocess.Popen[str]") -> None:
        nonlocal process
        process = started
        if interrupted:
            process.send_signal(signal.SIGINT)

    def pass_on(number: int, _frame: object) -> None:
        nonlocal interrupted
        first, interrupted = not interrupted, True
        if first:  # the next one may come while this is printed, and a print must not begin within another
            with suppress(OSError):  # the terminal that was closed
                say(item, f"interrupted: waiting for {name} to clean up")
        # A closed terminal may say SIGHUP, its shell SIGHUP and SIGTERM: nobody is impatient there.
        if process and (first or number == signal.SIGINT):
            process.send_signal(signal.SIGINT)

    # Handlers, since a KeyboardInterrupt can strike anywhere, also where nobody would wait for the command any more.
    before = {number: signal.getsignal(number) for number in _INTERRUPTIONS}
    heeded = {number: handler for number, handler in before.items() if callable(handler)}
    for number in heeded:
        signal.signal(number, pass_on)
    try:
        yield attend
    finally:
        for number, handler in heeded.items():
            signal.signal(number, handler)
    if interrupted:
        raise KeyboardInterrupt


def run(item: str, command: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str], text: str = "") -> int:
    """Run a command, `text` on its standard input, to its end; its exit code.

    Raises KeyboardInterrupt once it has ended, when there was an interruption.
    """
    with attending(item, Path(command[0]).name) as attend:
        process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.PIPE, text=True, process_group=0)
        attend(process)
        process.communicate(text)
    return process.returncode
