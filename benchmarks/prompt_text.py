"""The text of prompts: exactly as long as planned, shared exactly where planned, and new for every seed.

A prompt is made of words that are one token each, whatever stands beside them, so that its length is a count and no
estimate, and two prompts have the same tokens exactly as far as their words are the same. Why AIPerf does not make
them: docs/decisions/0012-prompts-of-words-of-one-token.md.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from benchmarks.errors import BenchmarkError
from benchmarks.load import tokenizer_environment
from benchmarks.workload import Planned, Workload

_FINDER = Path(__file__).with_name("single_token_words.py")
_FINDING_TIMEOUT_S = 600  # a first start compiles some thousand Python files, and may download the tokenizer


class Words(BaseModel):
    """Words of one token each, and the tokens that a prompt has besides its words."""

    words: list[str] = Field(min_length=2)
    overhead: int = Field(ge=0)


def find_words(aiperf: str, tokenizer: str, keep: Path) -> Words:
    """The words of a tokenizer: those kept in the file `keep`, which is written if it is not there.

    `aiperf` is the path of the AIPerf executable. Raises BenchmarkError when its environment cannot read the tokenizer.
    """
    if not keep.exists():
        python = Path(aiperf).resolve().with_name("python")
        command = [str(python), "-P", str(_FINDER), tokenizer]  # -P: this folder has an http.py
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=_FINDING_TIMEOUT_S,
                check=True,
                env=tokenizer_environment(tokenizer),
            )
        except OSError as error:
            raise BenchmarkError(
                f"there is no Python beside {aiperf} ({error.strerror}); name the aiperf of its own environment"
            ) from None
        except subprocess.CalledProcessError as error:
            reason = ([line.strip() for line in error.stderr.splitlines() if line.strip()] or ["no reason given"])[-1]
            raise BenchmarkError(f"cannot make prompts for tokenizer {tokenizer}: {reason[:300]}") from None
        except subprocess.TimeoutExpired:
            raise BenchmarkError(f"reading tokenizer {tokenizer} took over {_FINDING_TIMEOUT_S} s; given up") from None
        keep.write_text(done.stdout.splitlines()[-1] + "\n" if done.stdout else "", encoding="utf-8")
    try:
        return Words.model_validate_json(keep.read_bytes())
    except ValidationError:
        raise BenchmarkError(f"{keep} does not hold the words of a tokenizer; delete it") from None


def write_prompts(path: Path, workload: Workload, words: Words, seed: int) -> None:
    """Write the file that AIPerf reads (its `mooncake_trace`): one request a line, in order of sending.

    Raises BenchmarkError when a prompt is too short to be one.
    """
    with path.open("w", encoding="utf-8") as file:
        for planned in workload.requests:
            line: dict[str, object] = {
                "session_id": planned.id,
                "text_input": prompt(planned, workload.block_size, words, seed),
                "output_length": planned.osl,
            }
            if planned.at_s is not None:
                line["timestamp"] = round(1000 * planned.at_s, 3)
            file.write(json.dumps(line) + "\n")


def prompt(planned: Planned, block_size: int, words: Words, seed: int) -> str:
    """The text of one prompt. Raises BenchmarkError when it has no room for a word."""
    length = planned.isl - words.overhead
    if length < 1:
        raise BenchmarkError(f"a prompt of {planned.isl} tokens leaves no room for text beside {words.overhead} others")
    text: list[str] = []
    for block in planned.blocks:
        chosen = np.random.default_rng((seed, block)).integers(len(words.words), size=block_size)
        text += [words.words[index] for index in chosen]
    return "".join(text[:length])
