"""The report as a reader sees it: in Chromium, on a phone, in the dark, on paper; without network and complaints."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from stand_in_data import scenario_data

from benchmarks.compared_side import side_of
from benchmarks.comparison import compare
from benchmarks.comparison_page import write_comparison
from benchmarks.figures.draw import draw_figures
from benchmarks.report import write_report
from benchmarks.scenario import Scenario
from benchmarks.scenario_files import find_scenario
from tools.browser import Browser, BrowserError, Page, browser
from tools.pictures.simulated_runs import simulated_run
from tools.toolchain import chromium
from tools.toolchain.errors import ToolchainError

PHONE, DESK = 390, 1080
STARTED = datetime(2026, 1, 1, tzinfo=UTC)
PAGES = {"report": 4, "faulty": 4, "figures": 4, "comparison": 4}  # name -> charts
SIZES = (
    "[...document.querySelectorAll('svg')].map(svg => svg.getBoundingClientRect()).map(box => [box.width, box.height])"
)
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Text that lies outside of its chart would be cut off.
CUT_OFF = """[...document.querySelectorAll('svg')].flatMap(svg => {
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll('text')].filter(text => {
        const box = text.getBoundingClientRect();
        return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
            || box.bottom > frame.bottom + 1);
    }).map(text => text.textContent);
})"""
COLOURS = """[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
    ...[...document.querySelectorAll('svg path[stroke^="var"], svg text')].slice(0, 200).map(e => {
        const style = getComputedStyle(e); return e.tagName === 'text' ? style.fill : style.stroke; })]"""


@pytest.fixture(scope="module")
def running() -> Iterator[Browser]:
    try:
        executable = chromium.locate()
    except ToolchainError as error:
        pytest.fail(str(error), pytrace=False)
    with browser(executable) as started:
        yield started


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A good report, one with faults, the figures, and a comparison."""
    folder = tmp_path_factory.mktemp("results")
    slo = [{"metric": "ttft", "statistic": "p90", "bound": 450, "unit": "ms"}]
    data = scenario_data(isl=8192, osl=32, rates=[1, 2, 3], warmup_s=5, window_s=60, min_requests=60, slo=slo)
    good = simulated_run(folder / "good", Scenario.model_validate(data), "1p1d", STARTED)
    short = Scenario.model_validate(data | {"warmup_s": 0.1, "min_requests": 10, "window_s": 1})
    faulty = simulated_run(folder / "faulty", short, "agg-2", STARTED)
    fewer = {"rates": [1.0, 3.0, 6.0], "search": None, "window_s": 60.0, "min_requests": 300, "max_requests": 300}
    deepseek = find_scenario("deepseek-5k-140-hit30").model_copy(update=fewer)
    simulated_run(folder / "figures", deepseek, "1p1d", STARTED)
    simulated_run(folder / "figures", deepseek, "agg-2", STARTED)
    draw_figures(folder / "figures", folder / "drawn")
    other = simulated_run(folder / "good", Scenario.model_validate(data), "agg-2", STARTED)
    compared = compare(side_of("agg-2", [other]), side_of("1p1d", [good]))
    return {
        "report": write_report(good),
        "faulty": write_report(faulty),
        "figures": folder / "drawn" / "index.html",
        "comparison": write_comparison(compared, list(good.scenario.slo), folder / "compared"),
    }


def is_whole(page: Page, file: Path, charts: int) -> None:
    """Everything is drawn and nothing was asked of anybody."""
    assert page.complaints == []
    fetched = [address for address in page.requested if not address.startswith("data:")]
    assert fetched == [file.resolve().as_uri()]
    sizes = page.evaluate(SIZES)
    assert len(sizes) == charts
    assert all(width > 150 and height > 100 for width, height in sizes), sizes
    assert page.evaluate(CUT_OFF) == []


@pytest.mark.parametrize("name", PAGES)
def test_on_a_phone_nothing_is_wider_than_the_screen(running: Browser, files: dict[str, Path], name: str) -> None:
    page = running.open(files[name], PHONE, 844)
    is_whole(page, files[name], PAGES[name])
    assert page.evaluate(OVERFLOW) == 0
    # Without zooming, and not too small: a third of an inch has 32 CSS pixels.
    assert (
        page.evaluate(
            "Math.min(...[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height))"
        )
        > 9
    )


@pytest.mark.parametrize("name", PAGES)
def test_light_and_dark_differ_in_every_colour_of_text_and_lines(
    running: Browser, files: dict[str, Path], name: str
) -> None:
    light, dark = (running.open(files[name], DESK, scheme=scheme) for scheme in ("light", "dark"))
    for page in (light, dark):
        is_whole(page, files[name], PAGES[name])
        assert page.evaluate(OVERFLOW) == 0
    for one, other in zip(light.evaluate(COLOURS), dark.evaluate(COLOURS), strict=True):
        assert one != other


@pytest.mark.parametrize("name", PAGES)
def test_paper_is_light_even_where_screens_are_dark(running: Browser, files: dict[str, Path], name: str) -> None:
    page = running.open(files[name], 794, 1123, scheme="dark", media="print")  # A4 at 96 pixels an inch
    is_whole(page, files[name], PAGES[name])
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 31, 36)"
    assert page.evaluate(OVERFLOW) == 0
    assert page.pdf().startswith(b"%PDF")


def test_the_verdict_is_what_one_sees_first(running: Browser, files: dict[str, Path]) -> None:
    for name, words in (("report", "Every SLO is met"), ("faulty", "must not be used")):
        page = running.open(files[name], PHONE, 844)
        place = page.evaluate("document.querySelector('h1').getBoundingClientRect().bottom")
        assert words in page.evaluate("document.querySelector('h1').textContent")
        assert place < 300


def test_a_page_that_asks_for_something_or_complains_is_found_out(running: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<body style='width: 900px'><img src='http://127.0.0.1:9/x.png'><script>console.error('no')</script>"
        "<svg width=300 height=200><text x=290 y=20>cut off</text></svg>",
        encoding="utf-8",
    )
    page = running.open(bad, PHONE)
    assert "http://127.0.0.1:9/x.png" in page.requested
    assert "no" in page.complaints
    assert page.evaluate(OVERFLOW) > 0
    assert page.evaluate(CUT_OFF) == ["cut off"]


def test_a_browser_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    program = tmp_path / "chromium"
    program.write_text(f"#!{sys.executable}\n", encoding="utf-8")
    program.chmod(0o755)
    with pytest.raises(BrowserError, match="ended"), browser(program) as started:
        started.open(tmp_path, PHONE)
