"""`make demo` and `make demo-down`: the whole path on this machine, on a copy of the project in `.demo`."""

import os
import shutil
import sys

from tools import foreground
from tools.project_copy import ProjectCopy
from tools.toolchain import checkout, environments, pulumi_cli, tcmalloc
from tools.toolchain.console import Stages, say
from tools.toolchain.errors import ToolchainError
from tools.toolchain.versions import ROOT

ITEM = "demo"
STACK = "local-pd-1p1d"
PLACE = ROOT / ".demo"
PROJECT = ProjectCopy(PLACE, ITEM, "`make demo` goes on from here")
RESULTS = ROOT / "results"
_USABLE_WITH_FAULTS = 3  # exit code of `python -m benchmarks run` for a finished run whose report names a fault


def up() -> int:
    """Toolchain, environments, `pulumi up`, benchmark, report; prints how long each took."""
    stages = Stages(ITEM)
    with stages.stage("toolchain: Pulumi"):
        pulumi_cli.ensure()
    with stages.stage("environments: tools, Ray + vLLM + NIXL, AIPerf"):
        checkout.ensure()
        checkout.link_pulumi()
        tcmalloc.ensure()
        for name in ("runtime-cpu", "benchmark"):
            environments.ensure(name)
    with stages.stage(f"pulumi up of {STACK}"):
        PROJECT.prepare(STACK)
        PROJECT.pulumi("up", "--yes", "--suppress-outputs")
    with stages.stage("benchmark with AIPerf, and the report"):
        code = benchmark()
    print()
    stages.print_times()
    if code not in (0, _USABLE_WITH_FAULTS):
        raise ToolchainError(ITEM, "the benchmark failed (above)", "`make demo` goes on from here")
    report = max(RESULTS.glob(f"{STACK}/*/report.html"), key=lambda path: path.stat().st_mtime)
    if code == _USABLE_WITH_FAULTS:
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


def benchmark() -> int:
    """Measure the stack through its `benchmark` output; the benchmark's exit code."""
    aiperf = environments.directory("benchmark") / "bin" / "aiperf"
    run = [checkout.VENV / "bin" / "python", "-m", "benchmarks", "run", "-"]
    options = ["--results", RESULTS, "--aiperf", aiperf]
    described = PROJECT.output(STACK, "benchmark")
    return foreground.run(ITEM, [*run, *options], cwd=ROOT, env=os.environ, text=described)


if __name__ == "__main__":
    foreground.interruptible()
    try:
        sys.exit({"up": up, "down": down}[sys.argv[1]]())
    except ToolchainError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
