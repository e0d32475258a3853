"""`make benchmark` and `make results`: ask Pulumi where the stack is, and measure it from there.

A stack on Kubernetes is measured by a Job beside it, every other one by `python -m benchmarks run` on this machine.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.errors import BenchmarkError
from infra.benchmark_job import measure
from infra.benchmark_job.__main__ import Results, ScenariosFile, console, main
from infra.benchmark_job.outputs import Outputs, read_outputs
from tools.toolchain import environments
from tools.toolchain.errors import ToolchainError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
_UNKNOWN = (
    "Pulumi does not say what is deployed, its own words are above; `pulumi stack ls` lists the stacks there are, "
    "`make stacks` registers the shipped ones"
)
Stack = Annotated[str | None, typer.Option(help="Stack to measure instead of the selected one.")]


@app.command()
def benchmark(
    stack: Stack = None,
    scenario: Annotated[str | None, typer.Option(help="Scenario to run instead of the stack's.")] = None,
    rates: Annotated[str | None, typer.Option(help="Rates in req/s instead of the scenario's, e.g. 0.5,1.")] = None,
    scenarios_file: ScenariosFile = None,
    resume: Annotated[bool, typer.Option("--resume", help="Finish the latest unfinished run of this stack.")] = False,
    results: Results = Path("results"),
) -> None:
    """Measure a stack."""
    choice = measure.Choice(scenario, rates, resume, scenarios_file)
    outputs = _outputs(stack)
    if "benchmark_job" in outputs:
        raise typer.Exit(measure.run(_with_secrets(stack), results, console, choice).code)
    _measure_here(json.dumps(outputs["benchmark"]), ["--results", str(results), *choice.options])


@app.command()
def results(stack: Stack = None, results: Results = Path("results")) -> None:
    """Copy the results of a stack on Kubernetes here, after the end of the benchmark that is running, if one is."""
    if "benchmark_job" not in _outputs(stack):
        raise BenchmarkError("this stack is not on Kubernetes: `make benchmark` left its results here already")
    raise typer.Exit(measure.come_back(_with_secrets(stack), results, console).code)


def _outputs(stack: str | None) -> dict[str, Any]:
    """The stack's outputs, secrets masked: most stacks have none, and then no passphrase is needed to read them."""
    outputs: Any = json.loads(_pulumi(stack))
    name = f"stack {stack}" if stack else "the selected stack"
    if "benchmark" in outputs or "benchmark_job" in outputs:
        return outputs
    if "nodes" in outputs:
        raise BenchmarkError(f"{name} owns nodes and serves nothing; name one that is on them with STACK=")
    raise BenchmarkError(f"{name} is not deployed; run pulumi up (or name another one with STACK=)")


def _with_secrets(stack: str | None) -> Outputs:
    """The same with the kubeconfig, which stays in this process."""
    return read_outputs(_pulumi(stack, "--show-secrets"))


def _pulumi(stack: str | None, *options: str) -> str:
    command = ["pulumi", "stack", "output", "--json", *options, *(["--stack", stack] if stack else [])]
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    except OSError:
        raise BenchmarkError('there is no pulumi on PATH; run `make tools && eval "$(make -s env)"`') from None
    except subprocess.CalledProcessError:  # it has said why, on standard error
        raise BenchmarkError(_UNKNOWN) from None


def find_aiperf() -> Path:
    """AIPerf of this checkout, made if it has to be. Raises BenchmarkError."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return environments.ensure("benchmark") / "bin" / "aiperf"
    except ToolchainError as error:
        raise BenchmarkError(str(error)) from None


def _measure_here(target: str, options: list[str]) -> None:
    """Become `python -m benchmarks run`: signals and exit code are then its own."""
    environment = {**os.environ, "PD_MI325X_AIPERF": str(find_aiperf())}
    with tempfile.TemporaryFile("w+") as file:
        file.write(target)
        file.seek(0)
        os.dup2(file.fileno(), 0)
    command = [sys.executable, "-m", "benchmarks", "run", "-", *options]
    os.execve(command[0], command, environment)  # noqa: S606  no shell is wanted


if __name__ == "__main__":
    main(app)
