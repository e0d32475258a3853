"""The benchmark's image, built completely: from Debian's packages and the Python index."""

from pathlib import Path

import pytest

from tests.images.conftest import Build
from tools.image_builder.oci_layout import read_image, unpack


@pytest.fixture(scope="module")
def root(build: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file system of the built image."""
    root = tmp_path_factory.mktemp("benchmark") / "root"
    unpack(build.image("benchmark"), root)
    return root


def test_what_the_job_and_the_download_run_is_there(build: Build, root: Path) -> None:
    config, _ = read_image(build.image("benchmark"))
    assert config["config"]["User"] == "1000:1000"
    assert "PD_MI325X_AIPERF=/opt/aiperf/bin/aiperf" in config["config"]["Env"]
    assert (root / "opt/aiperf/bin/aiperf").exists()
    assert (root / "opt/pd-mi325x/benchmarks/__main__.py").exists()


def test_nothing_of_the_tools_or_of_this_machine_is_in_it(root: Path) -> None:
    for name in ("infra", "tools", "tests", ".git"):
        assert not (root / "opt/pd-mi325x" / name).exists()
    installed = {path.name.split("-")[0] for path in (root / "opt/venv").glob("lib/*/site-packages/*.dist-info")}
    assert "huggingface_hub" in installed
    assert not {"pulumi", "torch"} & installed
