"""Everything that can be found wrong before the first request is sent."""

from __future__ import annotations

import tempfile
from pathlib import Path

import requests

from benchmarks.errors import BenchmarkError
from benchmarks.http import direct
from benchmarks.metrics import scrape_target
from benchmarks.nic_counters import read_nics
from benchmarks.target import Target

TIMEOUT_S = 10.0


def check_results_folder(results: Path) -> None:
    """Raises BenchmarkError when nothing can be written under `results`."""
    try:
        results.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=results):
            pass
    except OSError as error:
        raise BenchmarkError(
            f"cannot write to the results folder {results}: {error.strerror}; choose one with --results"
        ) from None


def check_service(target: Target) -> None:
    """Raises BenchmarkError when the tokenizer is missing, the service, a metrics endpoint or a node-exporter
    does not answer, or the model is not served under the target's id.
    """
    tokenizer = Path(target.tokenizer)
    if tokenizer.is_absolute() and not tokenizer.is_dir():
        raise BenchmarkError(f"tokenizer directory {tokenizer} does not exist; check `tokenizer` in the target")
    served = _served_models(target.url)
    if target.model not in served:
        known = ", ".join(sorted(served)) or "none"
        raise BenchmarkError(f"{target.url} does not serve model {target.model!r}; it serves: {known}")
    scrape_target(target)
    read_nics(target)


def _served_models(url: str) -> list[str]:
    endpoint = f"{url.rstrip('/')}/v1/models"
    try:
        answer = direct().get(endpoint, timeout=TIMEOUT_S)
        if answer.status_code != 200:
            raise BenchmarkError(f"{endpoint} answered HTTP {answer.status_code}; is the application running?")
        return [str(model["id"]) for model in answer.json()["data"]]
    except (requests.exceptions.JSONDecodeError, KeyError, TypeError):
        raise BenchmarkError(f"{endpoint} did not answer with a list of models; is this an OpenAI API?") from None
    except requests.RequestException as error:
        raise BenchmarkError(
            f"{endpoint} does not answer ({type(error).__name__}); is the stack up, and is `url` in the target right?"
        ) from None
