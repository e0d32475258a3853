"""`make demo` and `make demo-down`: the whole path on this machine, with a project copy and a backend of its own.

Pulumi writes into a stack's file when it makes the stack, so the demo works on copies of the project's YAML files in
`.demo`, beside a file backend: neither the checkout nor the user's own Pulumi backend is touched.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.toolchain import checkout, environments, pulumi_cli, tcmalloc
from tools.toolchain.console import Stopwatch, duration, say
from tools.toolchain.errors import ToolchainError
from tools.toolchain.versions import ROOT

ITEM = "demo"
STACK = "local-pd-1p1d"
PLACE = ROOT / ".demo"
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
    stage(f"pulumi up of {STACK}", [prepare, lambda: pulumi("up", "--yes", "--suppress-outputs")])
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
    if list((PLACE / "backend").glob(f".pulumi/stacks/*/{STACK}.json")):
        pulumi("destroy", "--yes", "--suppress-outputs", "--stack", STACK)
    shutil.rmtree(PLACE)
    say(ITEM, "removed; reports are kept in results/")
    return 0


def prepare() -> None:
    """The project copy, its backend and its passphrase; existing ones are kept."""
    (PLACE / "backend").mkdir(parents=True, exist_ok=True)
    passphrase = PLACE / "passphrase"
    if not passphrase.exists():
        passphrase.touch(mode=0o600)
        passphrase.write_text(secrets.token_hex(32))
    for name in ("infra", ".venv"):
        if not (PLACE / name).is_symlink():
            (PLACE / name).symlink_to(ROOT / name)
    stack_file = f"Pulumi.{STACK}.yaml"
    salt = [line for line in _lines(PLACE / stack_file) if line.startswith("encryptionsalt:")]
    (PLACE / stack_file).write_text("\n".join([*_lines(ROOT / stack_file), *salt]) + "\n")
    shutil.copy(ROOT / "Pulumi.yaml", PLACE)
    pulumi("stack", "select", "--create", STACK)


def benchmark() -> int:
    """Measure the stack through its `benchmark` output; the benchmark's exit code."""
    target = subprocess.run(
        ["pulumi", "stack", "output", "benchmark", "--json", "--stack", STACK],
        cwd=PLACE,
        env=_environment(),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    aiperf = environments.directory("benchmark") / "bin" / "aiperf"
    run = [checkout.VENV / "bin" / "python", "-m", "benchmarks", "run", "-"]
    options = ["--results", RESULTS, "--aiperf", aiperf]
    code = _run([*run, *options], ROOT, dict(os.environ), target)
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    return code


def pulumi(*arguments: str) -> None:
    """Run Pulumi on the copy, its output passed through. Raises ToolchainError when it fails."""
    if _run(["pulumi", *arguments, "--non-interactive"], PLACE, _environment()):
        raise ToolchainError(ITEM, f"pulumi {arguments[0]} failed (above)", "`make demo` goes on from here")


def _run(command: Sequence[str | Path], cwd: Path, env: dict[str, str], text: str = "") -> int:
    """Run a command in a process group of its own, so that it hears of an interruption once, whoever says it; its code.

    A second Ctrl-C, which Pulumi would get from the terminal and from here, makes it leave without cleaning up.
    """
    process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.PIPE, text=True, process_group=0)
    while process.returncode is None:
        try:
            process.communicate(text)
        except KeyboardInterrupt:
            say(ITEM, f"interrupted: waiting for {Path(command[0]).name} to clean up")
            process.send_signal(signal.SIGINT)
            text = ""
    return process.returncode


def _environment() -> dict[str, str]:
    return {
        # The user's own stack, backend and passphrase are none of the demo's business.
        **{name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")},
        "PATH": os.pathsep.join((str(checkout.VENV / "bin"), os.environ.get("PATH", os.defpath))),
        "PULUMI_HOME": str(PLACE / "home"),
        "PULUMI_BACKEND_URL": f"file://{PLACE / 'backend'}",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(PLACE / "passphrase"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        # The demo needs no published provider; without this Pulumi tries to fetch the Kubernetes one.
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit({"up": up, "down": down}[sys.argv[1]]())
    except ToolchainError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
