"""What the engines' image says of itself is recorded, and held against what the stack was rendered for."""

import pytest
from stand_in_data import scenario_data, target_data

from benchmarks.image_content import image_content
from benchmarks.metrics import parse
from benchmarks.scenario import Scenario
from benchmarks.target import Target
from benchmarks.validity import check_run

# As Ray exports a gauge: its own labels besides ours.
_LINE = 'ray_pd_stack_info_total{{component="{}",version="{}",WorkerId="{}",NodeAddress="10.0.0.{}"}} 1.0\n'
PINNED = {"ray": "2.55", "vllm": "0.18+rocm700", "ucx": "da3fac2afcb5"}
GOOD = [("ray", "2.55", 1), ("vllm", "0.18+rocm700", 1), ("ucx_commit", "da3fac2", 1), ("ray", "2.55", 2)]


def exported(*entries: tuple[str, str, int]) -> dict[str, list[str]]:
    head = "# TYPE ray_pd_stack_info counter\n"
    return image_content(parse(head + "".join(_LINE.format(name, value, node, node) for name, value, node in entries)))


def image_finding(image: dict[str, list[str]]) -> tuple[str, str] | None:
    target = Target.model_validate(target_data("http://127.0.0.1:1", versions=PINNED))
    found = [it for it in check_run(target, Scenario.model_validate(scenario_data()), None, image) if it.id == "image"]
    return (found[0].outcome, found[0].sentence) if found else None


def test_engines_with_the_pinned_image() -> None:
    image = exported(*GOOD)
    assert image == {"ray": ["2.55"], "ucx_commit": ["da3fac2"], "vllm": ["0.18+rocm700"]}
    assert image_finding(image) == ("ok", "the engines' image is as pinned")


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (("vllm", "0.18", 2), "engines differ in vllm: 0.18, 0.18+rocm700"),
        (("vllm", "0.18", 2), "the image has vllm 0.18, the stack was rendered for 0.18+rocm700"),
        (("ucx_commit", "1234567", 2), "the image has ucx 1234567, the stack was rendered for da3fac2afcb5"),
    ],
)
def test_another_image_is_a_fault(entry: tuple[str, str, int], sentence: str) -> None:
    found = image_finding(exported(*GOOD, entry))
    assert found is not None
    assert found[0] == "fault"
    assert sentence in found[1]


def test_a_sample_that_does_not_tell_its_version_is_a_fault() -> None:
    image = image_content(parse('ray_pd_stack_info_total{component="ray"} 1.0\nray_pd_stack_info_total 1.0\n'))
    assert image == {"(not told)": ["(not told)"], "ray": ["(not told)"]}
    found = image_finding(image)
    assert found is not None
    assert "the image has ray (not told), the stack was rendered for 2.55" in found[1]


def test_without_an_image_there_is_nothing_to_hold_against_anything() -> None:
    assert image_finding(exported()) is None
