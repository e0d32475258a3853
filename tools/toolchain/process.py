"""Runs other programs: quick questions, and long work with a line of progress every few seconds."""

import math
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .cache import SAY_EVERY_S
from .console import Stopwatch, duration, home_relative, say
from .errors import ToolchainError

ASK_TIMEOUT_S = 60.0
END_TIMEOUT_S = 10.0


def ask(command: Sequence[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str | None:
    """What a program prints, stripped; None when it cannot be run, fails, or takes over a minute (a broken shim)."""
    try:
        result = subprocess.run(
            [str(word) for word in command],
            cwd=cwd,
            env=dict(env) if env else None,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ASK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def work(
    item: str,
    command: Sequence[str | Path],
    *,
    log: Path,
    progress: Callable[[float], str],
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    limit_s: float = math.inf,
) -> None:
    """Run a long command with its output in `log`; every few seconds say `progress(elapsed seconds)`.

    The command gets a process group of its own, which is ended when this run is interrupted or the limit is over.
    Raises ToolchainError with the command's last words.
    """
    name = f"`{Path(command[0]).name} {command[1]}`"
    log.parent.mkdir(parents=True, exist_ok=True)
    watch = Stopwatch()
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            env=dict(env) if env else None,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while process.returncode is None:
                try:
                    process.wait(min(SAY_EVERY_S, limit_s - watch.seconds))
                except subprocess.TimeoutExpired:
                    if watch.seconds >= limit_s:
                        problem = f"{name} did not end within {duration(limit_s)}"
                        raise ToolchainError(item, problem, f"see {home_relative(log)}") from None
                    say(item, progress(watch.seconds))
        finally:
            _end_group(process)
    if process.returncode != 0:
        problem = f"{name} failed with exit code {process.returncode}: {last_words(log)}"
        raise ToolchainError(item, problem, f"see {home_relative(log)}, then run the same command again")


def _end_group(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last_words(log: Path) -> str:
    """The last line that calls itself an error, else the last line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error", "e: "))]
    return (errors or lines or ["it printed nothing"])[-1][:300]
