"""`make demo` and `make demo-down`: the whole path on this machine, on a copy of the project in `.demo`."""

import os
import shutil
import signal
import sys
from collections.abc import Callable

from tools.project_copy import ProjectCopy
from tools.toolchain import checkout, environments, pulumi_cli, tcmalloc
from tools.toolchain.console import Stopwatch, duration, say
from tools.toolchain.errors import ToolchainError
from tools.toolchain.versions import ROOT

ITEM = "demo"
STACK = "local-pd-1p1d"
PLACE = ROOT / ".demo"
PROJECT = ProjectCopy(PLACE, ITEM, "`make demo` goes on from here")
RESULTS = ROOT / "results"
_INTERRUPTED = 130  # exit code of `python -m benchmarks run` after Ctrl-C
_USABLE_WITH_FAULTS = 3  # exit code of `python -m benchmarks run` for a finished run whose report names a fault


def up() -> int:
    """Toolchain, environments, `pulumi up`, benchmark, report; prints how long each took."""
    stages: list[tuple[str, float]] = []

    def stage(name: str, steps: list[Callable[[], object]]) -> None:
        watch = Stopwatch()
        say(ITEM, f"--- {name}")
        for step in steps:
            step()
        stages.append((name, watch.seconds))

    stage("toolchain: Pulumi", [pulumi_cli.ensure])
    names = ("runtime-cpu", "benchmark")
    stage(
        "environments: tools, Ray + vLLM + NIXL, AIPerf",
        [checkout.ensure, checkout.link_pulumi, tcmalloc.ensure, *(lambda n=n: environments.ensure(n) for n in names)],
    )
    stage(
        f"pulumi up of {STACK}",
        [lambda: PROJECT.prepare(STACK), lambda: PROJECT.pulumi("up", "--yes", "--suppress-outputs")],
    )
    measured: list[int] = []
    stage("benchmark with AIPerf, and the report", [lambda: measured.append(benchmark())])
    print()
    for name, seconds in [*stages, ("in all", sum(seconds for _, seconds in stages))]:
        print(f"{name:50} {duration(seconds):>12}")
    if measured[0] not in (0, _USABLE_WITH_FAULTS):
        raise ToolchainError(ITEM, "the benchmark failed (above)", "`make demo` goes on from here")
    report = max(RESULTS.glob(f"{STACK}/*/report.html"), key=lambda path: path.stat().st_mtime)
    if measured[0] == _USABLE_WITH_FAULTS:
        print("\nThe whole path ran; the report names what makes some of its latencies unusable (a busy machine?).")
    print(f"\nreport: {report}\nThe stack keeps running; remove it with: make demo-down")
    return 0


def down() -> int:
    """`pulumi destroy`, then the demo's own folder."""
    if not PLACE.exists():
        say(ITEM, "nothing to remove")
        return 0
    if PROJECT.deployed(STACK):
        PROJECT.pulumi("destroy", "--yes", "--suppress-outputs", "--stack", STACK)
    shutil.rmtree(PLACE)
    say(ITEM, "removed; reports are kept in results/")
    return 0


def deploy() -> None:
    """`pulumi up` on the copy."""
    PROJECT.prepare(STACK)
    PROJECT.pulumi("up", "--yes", "--suppress-outputs")


def benchmark() -> int:
    """Measure the stack through its `benchmark` output; the benchmark's exit code."""
    aiperf = environments.directory("benchmark") / "bin" / "aiperf"
    run = [checkout.VENV / "bin" / "python", "-m", "benchmarks", "run", "-"]
    options = ["--results", RESULTS, "--aiperf", aiperf]
    code = PROJECT.run([*run, *options], ROOT, dict(os.environ), PROJECT.output(STACK, "benchmark"))
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return code


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit({"up": up, "down": down}[sys.argv[1]]())
    except ToolchainError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
