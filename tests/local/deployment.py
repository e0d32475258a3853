"""A deployed local stack, looked at from outside: its answers, its counters, its processes."""

import json
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from prometheus_client.parser import text_string_to_metric_families

from infra.provider.ray_api import RayApi
from tests.shell import Shell

MODEL = "rehearsal-qwen3-moe"
ANSWER_TOKENS = 16
# Below, at and above the KV block of 128 tokens, the shortest prompt there is, and the longest that leaves room for
# the answer in the stack's 2,048 tokens.
PROMPT_LENGTHS = (1, 2, 5, 50, 100, 127, 128, 129, 200, 255, 256, 257, 300, 500, 512, 700, 1000, 1024, 1500, 2032)


@dataclass(frozen=True)
class Deployment:
    """Stack `stack` of `shell`, whose ports begin at `port_base`."""

    shell: Shell
    stack: str
    port_base: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port_base}"

    def pulumi(self, arguments: str, seconds: float = 600) -> str:
        """A Pulumi command on this stack that has to succeed; what it printed."""
        answer = self.shell.run(f"pulumi {arguments} --stack {self.stack}", seconds)
        assert answer.ok, answer.text
        return answer.text

    def head(self) -> dict[str, Any]:
        """Outputs of the stack's Ray head, from Pulumi's state."""
        return self.heads()[0]

    def heads(self) -> list[dict[str, Any]]:
        """None or one: the stack's Ray head, if it was made."""
        state = json.loads(self.pulumi("stack export"))
        resources = state["deployment"].get("resources", [])
        return [resource["outputs"] for resource in resources if resource["type"] == "pd:index:LocalRayCluster"]

    def ray(self) -> RayApi:
        head = self.head()
        return RayApi(head["address"], token_file=head["tokenFile"])

    def answers(self) -> list[list[int]]:
        """Token ids answered at temperature 0 to prompts of PROMPT_LENGTHS tokens, the same prompts every time."""
        return [self._answer(prompt) for prompt in prompts()]

    def _answer(self, prompt: list[int]) -> list[int]:
        body = {
            "model": MODEL,
            "prompt": prompt,
            "max_tokens": ANSWER_TOKENS,
            "temperature": 0,
            "ignore_eos": True,
            "return_token_ids": True,
        }
        response = requests.post(f"{self.url}/v1/completions", json=body, timeout=120)
        assert response.ok, response.text
        assert response.json()["usage"]["prompt_tokens"] == len(prompt)
        return response.json()["choices"][0]["token_ids"]

    def counter(self, name: str) -> float:
        """Sum of a counter over all replicas; 0 while nothing was counted."""
        text = requests.get(f"http://127.0.0.1:{self.port_base + 2}/metrics", timeout=30).text
        families = text_string_to_metric_families(text)
        return sum(s.value for family in families for s in family.samples if s.name == name)

    def counter_reaches(self, name: str, value: float, seconds: float = 90) -> float:
        """The counter once it has reached `value`, or what it was when the time was over: Ray exports every 10 s."""
        deadline = time.monotonic() + seconds
        while (now := self.counter(name)) < value and time.monotonic() < deadline:
            time.sleep(1)
        return now

    def engines(self) -> set[str]:
        """Process ids of the replicas' actors, by deployment and replica."""
        details = self.ray().applications()["llm"]["deployments"]
        return {f"{name} {replica['pid']}" for name, d in details.items() for replica in d["replicas"]}


def prompts() -> list[list[int]]:
    """Prompts of PROMPT_LENGTHS tokens; ids from 1, as 0 ends a text in the rehearsal model's vocabulary of 1,024."""
    draw = random.Random(20)
    return [[draw.randrange(1, 1024) for _ in range(length)] for length in PROMPT_LENGTHS]


def processes_of(directory: str) -> list[str]:
    """Processes that have to do with the Ray head in `directory`: named in their environment, or a file they hold."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                marked = f"={directory}".encode() in (entry / "environ").read_bytes()
                holds = any(str(file.readlink()).startswith(directory) for file in (entry / "fd").iterdir())
                if marked or holds:
                    found.append(f"{entry.name} {(entry / 'comm').read_text().strip()}")
            except OSError:
                continue
    return found
