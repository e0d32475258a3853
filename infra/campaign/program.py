"""The `pulumi` on PATH as the Automation API starts it, in a way that survives Ctrl-C, `kill` and a lost terminal."""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from pulumi.automation import CommandResult, InvalidVersionError, OnOutput, PulumiCommand
from pulumi.automation.errors import create_command_error

from benchmarks.errors import BenchmarkError
from tools.foreground import attending

ITEM = "campaign"
_TICK_S = 0.5
_UPDATES = ("preview", "up", "refresh", "destroy")


class PulumiProgram(PulumiCommand):
    """Runs commands for a workspace. Raises BenchmarkError when there is no pulumi that the API takes.

    The API's own would leave Pulumi alone at a Ctrl-C: here each command has a process group of its own, hears of the
    interruption once, and is waited for; then there is a KeyboardInterrupt. And where the API's own reads a pipe, an
    update writes into `log`: when this process is killed, it goes on to its end instead of ending at a broken pipe.

    log: for the words of updates; those of other commands may be secrets and are not kept. started: is told the process
    id of an update. tick: is called twice a second while it runs. said: what the latest command said.
    """

    def __init__(self) -> None:
        try:
            super().__init__()
        except FileNotFoundError:
            raise BenchmarkError('there is no pulumi on PATH; run `make tools && eval "$(make -s env)"`') from None
        except (InvalidVersionError, OSError, subprocess.CalledProcessError) as error:
            raise BenchmarkError(f"the pulumi on PATH cannot be used: {error}; run `make doctor`") from None
        self.log = Path(os.devnull)
        self.started: Callable[[int], None] = lambda _pid: None
        self.tick: Callable[[], None] = lambda: None
        self.said = CommandResult("", "", 0)

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: OnOutput | None = None,
        on_error: OnOutput | None = None,
    ) -> CommandResult:
        """Run one command to its end. Raises CommandError, or KeyboardInterrupt after an interruption."""
        environment = {**os.environ, **additional_env, "PULUMI_AUTOMATION_API": "true"}
        command = [self.command, "--non-interactive", *args]
        start = self._update if args[0] in _UPDATES else self._ask
        with attending(ITEM, f"pulumi {args[0]}") as attend:
            self.said = start(command, cwd, environment, attend)
        if self.said.code:
            raise create_command_error(self.said)
        return self.said

    def _update(
        self,
        command: list[str],
        cwd: str,
        environment: dict[str, str],
        attend: Callable[["subprocess.Popen[str]"], None],
    ) -> CommandResult:
        with self.log.open("ab") as sink:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                text=True,
                process_group=0,
            )
            before = sink.tell()
        attend(process)
        self.started(process.pid)
        while True:
            try:
                process.wait(_TICK_S)
                break
            except subprocess.TimeoutExpired:
                self.tick()
        with self.log.open("rb") as words:
            words.seek(before)
            text = words.read().decode("utf-8", errors="replace")
        return CommandResult(text, text, process.returncode)

    def _ask(
        self,
        command: list[str],
        cwd: str,
        environment: dict[str, str],
        attend: Callable[["subprocess.Popen[str]"], None],
    ) -> CommandResult:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            process_group=0,
        )
        attend(process)
        out, err = process.communicate()
        return CommandResult(out, err, process.returncode)
