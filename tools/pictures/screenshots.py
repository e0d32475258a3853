"""Screenshots of the report and of the figures, from simulated runs, for docs/images (`make screenshots`)."""

import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.compared_side import find_side
from benchmarks.comparison import compare
from benchmarks.comparison_page import write_comparison
from benchmarks.figures.draw import draw_figures
from benchmarks.report import write_report
from benchmarks.run_directory import RunDirectory
from benchmarks.scenario import Scenario, Search
from benchmarks.scenario_files import find_scenario
from tools.browser import Browser, BrowserError, browser
from tools.pictures.simulated_runs import over_the_range, simulated_run
from tools.toolchain import chromium
from tools.toolchain.errors import ToolchainError
from tools.toolchain.versions import ROOT

FOLDER = ROOT / "docs" / "images"
_START = datetime(2026, 1, 1, tzinfo=UTC)
_PHONE, _DESK = 390, 1080
# Some of what the figures of the post need.
_FOR_FIGURES = {
    "qwen-16k-1k": ("2p1d", "agg-3"),
    "qwen-8k-1k": ("1p2d", "agg-3"),
    "deepseek-5k-140-hit30": ("1p1d", "agg-2"),
}


def simulated_scenario() -> Scenario:
    """The load of the report that is shown."""
    return find_scenario("qwen-16k-1k").model_copy(
        update={
            "name": "simulated-16k-1k",
            "rates": [0.5, 1, 2, 3, 4, 5],
            "search": None,
            "description": "Simulated engines, no GPU and no vLLM: no number is of any hardware",
        }
    )


def take(folder: Path, executable: Path) -> None:
    """Make the runs, open what is written about them, and photograph it."""
    with tempfile.TemporaryDirectory() as scratch, browser(executable) as running:
        good = simulated_run(Path(scratch), simulated_scenario(), "2p1d", _START)
        report = write_report(good)
        _shoot(running, report, folder / "report-phone.png", _PHONE, 1700)
        _shoot(running, report, folder / "report-dark.png", _DESK, 1260, dark=True)
        faulty = write_report(_broken(Path(scratch)))
        _shoot(running, faulty, folder / "report-fault.png", _DESK, 620)
        _shoot(running, _compared(Path(scratch) / "compared"), folder / "comparison.png", _DESK, 1000)
        _figures(Path(scratch) / "figures")
        _shoot(running, Path(scratch) / "figures" / "out" / "index.html", folder / "figures.png", _DESK, 1640)


def _broken(scratch: Path) -> RunDirectory:
    """A run whose warm-up was left out and whose windows are too short for what they are to show."""
    scenario = simulated_scenario().model_copy(
        update={"warmup_s": 1.0, "window_s": 20.0, "min_requests": 20, "max_requests": 20}
    )
    return simulated_run(scratch, scenario, "agg-3", _START + timedelta(minutes=1))


def _compared(scratch: Path) -> Path:
    """The page of two searches on simulated deployments."""
    update = {"rates": [], "search": Search(lowest=0.5, highest=20), "min_requests": 1500, "max_requests": 3000}
    scenario = simulated_scenario().model_copy(update={**update, "window_s": 200.0})
    for minute, topology in enumerate(("agg-3", "2p1d"), start=30):
        simulated_run(scratch, scenario, topology, _START + timedelta(minutes=minute))
    base, candidate = find_side("simulated-agg-3", scratch), find_side("simulated-2p1d", scratch)
    return write_comparison(compare(base, candidate), list(scenario.slo), scratch / "page")


def _figures(scratch: Path) -> None:
    minute = 2
    for name, topologies in _FOR_FIGURES.items():
        for topology in topologies:
            shorter = {"window_s": 60.0, "min_requests": 150, "max_requests": 150}
            scenario = over_the_range(find_scenario(name)).model_copy(update=shorter)
            simulated_run(scratch / "results", scenario, topology, _START + timedelta(minutes=minute))
            minute += 1
    draw_figures(scratch / "results", scratch / "out")


def _shoot(running: Browser, file: Path, image: Path, width: int, height: int, dark: bool = False) -> None:
    page = running.open(file, width, scheme="dark" if dark else "light")
    image.write_bytes(page.screenshot(height))
    print(f"{image.relative_to(ROOT)}: {image.stat().st_size / 1024:.0f} KiB")


def main() -> int:
    """Write all of them; the exit code."""
    try:
        FOLDER.mkdir(exist_ok=True)
        take(FOLDER, chromium.locate())
    except (ToolchainError, BrowserError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
