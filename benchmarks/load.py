"""Load by AIPerf 0.13: the command line for one request rate.

One AIPerf process per rate. AIPerf's own sweep (`--request-rate a,b,c`) starts a fresh process per rate too
(aiperf/orchestrator/local_executor.py), so it saves nothing, and leaves no pause in which counters can be attributed to
a rate. Measured on 2 idle cores: 7 s from start to exit besides the load itself, of which 4 s before the first request.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.scenario import Scenario
from benchmarks.target import Target

VERSION_TIMEOUT_S = 120  # a first start compiles some thousand Python files


@dataclass(frozen=True)
class LoadCommand:
    """An AIPerf command line for one rate.

    `environment` holds what is set for it, `removed` names variables taken out of the inherited environment.
    """

    argv: list[str]
    environment: dict[str, str]
    removed: list[str]

    @property
    def inherited(self) -> dict[str, str]:
        """This process's environment with the command's changes."""
        kept = {name: value for name, value in os.environ.items() if name not in self.removed}
        return kept | self.environment

    def full_environment(self, scratch: str) -> dict[str, str]:
        """The environment to start it in. AIPerf leaves a folder in TMPDIR after each run, hence `scratch`."""
        return self.inherited | {"TMPDIR": scratch}


def find_aiperf(name: str) -> str:
    """The path of the AIPerf executable. Raises BenchmarkError when there is none."""
    found = shutil.which(name)
    if found is None:
        raise BenchmarkError(
            f'aiperf not found at {name!r}; run `make toolchain` and `eval "$(make -s env)"`, or name it with --aiperf '
            "or PD_MI325X_AIPERF"
        )
    return found


def aiperf_version(executable: str) -> str:
    """What `aiperf --version` prints. Raises BenchmarkError when it does not run."""
    try:
        done = subprocess.run(
            [executable, "--version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = str(error).splitlines()[0]
        raise BenchmarkError(f"{executable} --version does not work ({reason}); run `make toolchain` again") from None
    return done.stdout.strip()


def build_command(
    executable: str, target: Target, scenario: Scenario, rate: float, seed: int, output: Path, prompts: Path
) -> LoadCommand:
    """The AIPerf command for one rate: every line of the file `prompts` once, in order; raw output goes to `output`.

    AIPerf sends each line's text as it stands, as a request of its own. ignore_eos makes the model write all the tokens
    that a line asks for; min_tokens would do so too, but prefill asks for max_tokens 1, and vLLM rejects min_tokens
    above it with HTTP 400.
    """
    with prompts.open("rb") as file:
        requests = sum(1 for _ in file)
    workers = worker_count()
    argv = [
        *(executable, "profile"),
        *("--model-names", target.model),
        *("--url", target.url),
        *("--endpoint-type", "completions", "--streaming", "--use-server-token-count", "--use-legacy-max-tokens"),
        *("--extra-inputs", "ignore_eos:true"),
        *("--tokenizer", target.tokenizer),
        *("--input-file", str(prompts), "--custom-dataset-type", "mooncake_trace"),
        *_arrivals(scenario, rate),
        *("--request-count", str(requests)),
        *("--dataset-sampling-strategy", "sequential", "--random-seed", str(seed)),
        *("--request-timeout-seconds", f"{scenario.request_timeout_s:g}"),
        *("--output-artifact-dir", str(output), "--export-level", "records"),
        *("--no-gpu-telemetry", "--no-server-metrics", "--ui", "none"),
        *("--workers-max", str(workers), "--record-processors", str(max(1, workers // 4))),
    ]
    return LoadCommand(argv, _environment(), _removed(target.tokenizer))


def tokenizer_environment(tokenizer: str) -> dict[str, str]:
    """The environment of a program that reads a tokenizer as AIPerf does."""
    return LoadCommand([], _environment(), _removed(tokenizer)).inherited


def _arrivals(scenario: Scenario, rate: float) -> list[str]:
    """Independent arrivals at a rate, or the due times that stand in the file."""
    if scenario.arrivals == "trace":
        return ["--fixed-schedule"]
    return ["--request-rate", f"{rate:g}", "--arrival-pattern", "poisson", "--no-fixed-schedule"]


def worker_count() -> int:
    """AIPerf workers: half the cores, at most 8, so that the load generator does not take all of a small machine."""
    return max(1, min(8, (os.cpu_count() or 1) // 2))


def _environment() -> dict[str, str]:
    return {
        # Without this AIPerf keeps every generated dataset in the user's cache; each of ours has a seed of its own.
        "AIPERF_DATASET_MMAP_CACHE_ENABLED": "false",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }


def _removed(tokenizer: str) -> list[str]:
    """AIPerf takes a local tokenizer directory for a repository id when HF_HUB_OFFLINE is set (seen)."""
    return ["HF_HUB_OFFLINE"] if Path(tokenizer).is_absolute() else []
