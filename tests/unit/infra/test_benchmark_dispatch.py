"""`make benchmark` and `make results`: which way is taken, seen through a `pulumi` that answers as a test says."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
# Answers `stack output`, with secrets only where they are asked for, and notes how it was called.
PULUMI = """
import json, os, sys
with open(os.environ["CALLS"], "a") as file:
    print(*sys.argv[1:], file=file)
answer = json.load(open(os.environ["ANSWER"]))
if answer is None:
    sys.exit("error: no stack selected")
if "--show-secrets" not in sys.argv and "cluster" in answer:
    answer["cluster"] = "[secret]"
print(json.dumps(answer))
"""


class Make:
    """The dispatcher as the Makefile starts it."""

    def __init__(self, tmp_path: Path) -> None:
        self._folder = tmp_path
        program = tmp_path / "bin" / "pulumi"
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\n{PULUMI}", encoding="utf-8")
        program.chmod(0o755)

    def __call__(self, answer: Any, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
        (self._folder / "answer").write_text(json.dumps(answer), encoding="utf-8")
        environment = {
            **os.environ,
            "PATH": path or f"{self._folder / 'bin'}:{os.environ['PATH']}",
            "CALLS": str(self._folder / "calls"),
            "ANSWER": str(self._folder / "answer"),
        }
        command = [sys.executable, "-m", "infra.benchmark_job.dispatch", *arguments]
        command += ["--results", str(self._folder / "results")]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)

    @property
    def calls(self) -> list[str]:
        return (self._folder / "calls").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return Make(tmp_path)


@pytest.mark.parametrize("verb", ["benchmark", "results"])
@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (
            None,
            "Pulumi does not say what is deployed, its own words are above; `pulumi stack ls` lists the stacks there "
            "are, `make stacks` registers the shipped ones",
        ),
        ({}, "stack nope is not deployed; run pulumi up (or name another one with STACK=)"),
        ({"nodes": 4, "cluster": {}}, "stack nope owns nodes and serves nothing; name one that is on them with STACK="),
    ],
)
def test_nothing_to_measure_is_one_line(make: Make, verb: str, answer: Any, line: str) -> None:
    done = make(answer, verb, "--stack", "nope")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"error: {line}"
    assert ("no stack selected" in done.stderr) is (answer is None)
    assert make.calls == ["stack output --json --stack nope"]


def test_a_name_that_begins_with_a_dash_is_a_name(tmp_path: Path) -> None:
    """And no option of the dispatcher, which would show its usage."""
    for target in ("benchmark", "results"):
        made = subprocess.run(
            ["make", "-n", target, "STACK=-h"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
        )
        assert f'dispatch {target} --stack="-h" --results="results"' in made.stdout, made.stdout


def test_a_scenarios_file_of_ones_own_is_named_to_make() -> None:
    made = subprocess.run(
        ["make", "-n", "benchmark", "SCENARIOS=my own.yaml", "SCENARIO=mine"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert '--scenario="mine" --scenarios="my own.yaml"' in " ".join(made.stdout.replace("\\\n", "").split()), (
        made.stdout
    )


def test_a_scenarios_file_reaches_the_benchmark(make: Make) -> None:
    target = {
        "stack": "x", "url": "http://127.0.0.1:9", "model": "m", "tokenizer": "t", "scenario": "mine", "kv": None,
        "versions": {}, "commit": "",
        "deployment": {
            "kind": "aggregated", "topology": "agg-1", "platform": "cpu", "prefill": 0, "decode": 0, "aggregated": 1,
            "gpus": 0, "dummy_weights": True, "engine": {},
        },
    }  # fmt: skip
    done = make({"benchmark": target}, "benchmark", "--scenarios", "/nowhere/mine.yaml")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: cannot read scenarios from /nowhere/mine.yaml")


def test_the_name_reaches_pulumi(make: Make) -> None:
    done = make(None, "benchmark", "--stack=-h")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: Pulumi does not say")
    assert make.calls == ["stack output --json --stack -h"]


def test_a_shell_without_pulumi_is_one_line(make: Make) -> None:
    done = make({}, "benchmark", path="/nowhere")
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no pulumi on PATH; run `make tools")
    assert len(done.stderr.splitlines()) == 1


def test_a_stack_that_is_not_on_kubernetes_is_measured_from_here(make: Make) -> None:
    """The target reaches `python -m benchmarks run` on standard input, and its exit code comes back."""
    done = make({"benchmark": {"stack": "x"}}, "benchmark", "--rates", "1")
    assert done.returncode == 1
    assert "error: target standard input: url: is missing" in done.stderr
    assert make.calls == ["stack output --json"]  # no secrets: they would need a passphrase


def test_results_of_such_a_stack_are_here_already(make: Make) -> None:
    done = make({"benchmark": {}}, "results")
    assert done.returncode == 1
    assert "this stack is not on Kubernetes" in done.stderr


@pytest.mark.parametrize("verb", ["benchmark", "results"])
def test_a_stack_on_kubernetes_is_measured_there(make: Make, verb: str) -> None:
    place = {"namespace": "llm", "cronjob": "benchmark", "results_claim": "results", "image": "b:1", "stack": "x"}
    answer = {
        "benchmark": {},
        "benchmark_job": {**place, "scenario": "rehearsal"},
        "cluster": {"kubeconfig": "/nowhere/kubeconfig"},
    }
    done = make(answer, verb)
    assert done.returncode == 1
    assert "error: kubeconfig /nowhere/kubeconfig does not exist" in done.stderr
    assert make.calls == ["stack output --json", "stack output --json --show-secrets"]
