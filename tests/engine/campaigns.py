"""A user who runs campaigns over stacks on one Ray cluster, which a stand-in plays; nothing is really measured."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from infra.campaign.record import Campaign
from serving.versions import platform_versions
from tests.engine.stand_in_dashboard import TOKEN, Dashboard
from tests.shell import Answer, Shell

BASE = {"model": "rehearsal-qwen3-moe", "platform": "cpu", "target": "ray", "scenario": "rehearsal"}
# Topologies of two replicas each.
STACKS = {"pd": "1p1d", "agg": "agg-2"}


class Cluster(Dashboard):
    """A stand-in dashboard that keeps an application while `lingers`, as Serve does while its replicas end."""

    def __init__(self) -> None:
        super().__init__(platform_versions("cpu")["ray"])
        self.lingers = False
        self.most = 0
        self._leaving: dict[str, Any] = {}

    def put(self, body: dict[str, Any]) -> None:
        self._leaving = dict(self.configs)
        super().put(body)
        self.most = max(self.most, len(self.configs))

    def get(self, path: str) -> object:
        answer = super().get(path)
        if self.lingers and path == "/api/serve/applications/" and isinstance(answer, dict):
            for name in self._leaving.keys() - self.configs.keys():
                answer["applications"][name] = {"status": "DELETING", "deployments": {}, "deployed_app_config": None}
        return answer


class User:
    """Types `python -m infra.campaign` in a checkout whose measuring takes as long as `control` says."""

    def __init__(self, shell: Shell, cluster: Cluster, token: Path) -> None:
        self.shell = shell
        self.cluster = cluster
        token.write_text(TOKEN)
        self.ray = {"address": cluster.url, "tokenFile": str(token), "serviceUrl": "http://127.0.0.1:1"}
        shutil.copy(
            Path(__file__).with_name("stand_in_measure.py"), shell.checkout / "infra" / "campaign" / "measure.py"
        )
        self.control()
        for name, topology in STACKS.items():
            shell.write_stack(name, topology=topology, ray=self.ray, **BASE)
            assert shell.run(f"pulumi stack init {name} --no-select").ok

    def control(self, **values: Any) -> None:
        """What measuring does from now on: tests/engine/stand_in_measure.py."""
        part = self.shell.checkout / "control.part"
        part.write_text(json.dumps(values))
        part.replace(self.shell.checkout / "control.json")

    def campaign(self, arguments: str = "pd agg") -> Answer:
        return self.shell.run(command(arguments), 300)

    @contextmanager
    def starts(self, arguments: str = "pd --repeats 1") -> "Iterator[subprocess.Popen[str]]":
        """A campaign that goes on beside the test; whatever the test makes of it, it has ended afterwards."""
        process = self.shell.start(command(arguments))
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @contextmanager
    def measuring(self) -> "Iterator[subprocess.Popen[str]]":
        """A campaign that measures its first stack, and would do so for long."""
        self.control(seconds=300)
        with self.starts() as process:
            eventually(lambda: self.measured == ["pd"], "pd is measured", 120)
            yield process

    def interrupts(self, arguments: str, after: str) -> Answer:
        return self.shell.interrupt(command(arguments), after)

    def kills(self, after: str) -> None:
        """kill -9 of a campaign, and of nothing else, once it has said `after`."""
        with self.starts() as process:
            assert process.stdout is not None
            text = ""
            while after not in text:
                line = process.stdout.readline()
                assert line, f"it ended before it said {after!r}:\n{text}"
                text += line
            process.send_signal(signal.SIGKILL)

    @property
    def record(self) -> Campaign:
        """The latest campaign's file."""
        path = max((self.shell.checkout / "results" / "campaigns").glob("*/campaign.json"))
        return Campaign.model_validate_json(path.read_text())

    @property
    def measured(self) -> list[str]:
        """Stacks in the order in which they were measured, or begun to be."""
        file = self.shell.checkout / "measured"
        return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def campaigns(self) -> list[Path]:
        return sorted((self.shell.checkout / "results" / "campaigns").glob("*/campaign.json"))

    def nothing_is_up(self) -> bool:
        """Neither on the cluster nor in Pulumi's state, and no lock is left."""
        locks = [*Path(self.shell.env["PULUMI_BACKEND_URL"].removeprefix("file://")).glob(".pulumi/locks/**/*.json")]
        for name in STACKS:
            state = json.loads(self.shell.run(f"pulumi stack export --stack {name}").text)["deployment"]
            if any(resource["type"].startswith("pd:") for resource in state.get("resources", [])):
                return False
            if state.get("pending_operations"):
                return False
        return self.cluster.configs == {} and locks == []


def command(arguments: str) -> str:
    """`exec`, so that signals to the process are for the campaign itself."""
    return f"exec python -m infra.campaign {arguments}"


def eventually(true: Callable[[], bool], what: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
