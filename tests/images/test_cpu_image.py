"""The CPU engine image, built completely, serves the rehearsal model, and the benchmark's image measures it.

Both run under runc as the users their images name, without a capability. 30 GB of disk and 20 minutes: `make
test-images` has it, `make test` has not.
"""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from serving.rehearsal_directory import rehearsal_model_directory
from serving.versions import platform_versions, versions
from tests.images.conftest import Build
from tests.images.container import Image
from tools.image_builder.oci_layout import read_image
from tools.toolchain.items import path

LIMIT = int(versions()["image"]["build"]["layer_limit_mb"]) * 10**6
MODEL = "rehearsal-qwen3-moe"
START_S = 300


@pytest.fixture(scope="module")
def engine_image(build: Build, tmp_path_factory: pytest.TempPathFactory) -> Image:
    return Image(build.image("cpu"), tmp_path_factory.mktemp("cpu"), consume=True)


@pytest.fixture(scope="module")
def model() -> Path:
    """The rehearsal model's folder, written with the CPU environment as the local stacks write it."""
    folder = rehearsal_model_directory()
    if not folder.exists():
        python = path("runtime-cpu") / "bin" / "python"
        subprocess.run([python, "-m", "serving.rehearsal_model", str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def engine(engine_image: Image, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of vLLM's server in a container."""
    port, log = _free_port(), tmp_path_factory.mktemp("engine") / "log"
    command = ["python", "-m", "vllm.entrypoints.openai.api_server", "--model", "/model", "--served-model-name", MODEL]
    command += ["--port", str(port), "--max-model-len", "2048", "--enforce-eager", "--load-format", "dummy"]
    with engine_image.running(command, mounts={"/model": model}, log=log, VLLM_CPU_KVCACHE_SPACE="1") as process:
        deadline = time.monotonic() + START_S
        while not _answers(f"http://127.0.0.1:{port}/health"):
            assert process.poll() is None, log.read_text()[-4000:]
            assert time.monotonic() < deadline, log.read_text()[-4000:]
            time.sleep(1)
        yield f"http://127.0.0.1:{port}"


def test_it_says_what_is_in_it_and_no_layer_is_too_large(engine_image: Image) -> None:
    told = json.loads((engine_image.root / "etc" / "pd-stack.json").read_text())
    assert told["found"]["ray"] == platform_versions("cpu")["ray"]
    assert told["found"]["nixl"] == platform_versions("cpu")["nixl"]
    assert engine_image.config["User"] == "1000:1000"


def test_its_layers_fit_a_registry(build: Build) -> None:
    assert max(size for _, size in read_image(build.image("cpu"))[1]) < LIMIT


def test_it_serves_the_rehearsal_model(engine: str) -> None:
    body = {"model": MODEL, "prompt": [5, 6, 7], "max_tokens": 4, "temperature": 0, "ignore_eos": True}
    answer = requests.post(f"{engine}/v1/completions", json=body, timeout=120)
    assert answer.ok, answer.text
    assert answer.json()["usage"] == {"prompt_tokens": 3, "total_tokens": 7, "completion_tokens": 4} | {
        key: value for key, value in answer.json()["usage"].items() if key.endswith("_details")
    }


def test_aiperf_of_the_benchmark_image_measures_it(build: Build, engine: str, model: Path, tmp_path: Path) -> None:
    image = Image(build.image("benchmark"), tmp_path)
    results, tokenizer = tmp_path / "results", tmp_path / "model"
    results.mkdir()
    shutil.copytree(model, tokenizer)
    shutil.chown(results, 1000, 1000)
    command = ["/opt/aiperf/bin/aiperf", "profile", "--model", MODEL, "--url", engine, "--endpoint-type", "completions"]
    command += ["--tokenizer", "/model", "--request-count", "8", "--concurrency", "2", "--ui", "none"]
    command += ["--synthetic-input-tokens-mean", "32", "--output-tokens-mean", "8", "--output-artifact-dir", "/results"]
    log = tmp_path / "log"
    mounts = {"/model": tokenizer, "/results": results}
    # Not HF_HUB_OFFLINE: with it AIPerf takes the tokenizer's directory for a repository (benchmarks/load.py).
    with image.running(command, mounts=mounts, log=log, HOME="/tmp") as process:
        assert process.wait(300) == 0, log.read_text()[-4000:]
    (exported,) = results.rglob("profile_export_aiperf.json")
    assert json.loads(exported.read_text())["request_count"]["avg"] == 8
    assert exported.stat().st_uid == 1000


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=2).ok
    except requests.RequestException:
        return False
