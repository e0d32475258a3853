"""A person at a shell in a checkout of their own: a copy of this one, with its own Pulumi home and backend."""

import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Answer:
    """What a command came back with; `text` is standard output and standard error together."""

    code: int
    text: str

    @property
    def ok(self) -> bool:
        return self.code == 0


class Shell:
    """Runs commands in `checkout`. Nothing of it reaches the user's own Pulumi state or stack files."""

    def __init__(self, checkout: Path, home: Path) -> None:
        self.checkout = checkout
        (home / "backend").mkdir(parents=True)
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("PULUMI_")},
            "PATH": f"{checkout / '.venv' / 'bin'}:{os.environ['PATH']}",
            "PULUMI_HOME": str(home / "pulumi"),
            "PULUMI_BACKEND_URL": f"file://{home / 'backend'}",
            "PULUMI_CONFIG_PASSPHRASE": "a test's passphrase",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }

    def run(self, command: str, seconds: float = 120) -> Answer:
        """One command line as typed. A command that does not come back in time is a failure of the test."""
        with self.start(command) as process:
            try:
                text, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return Answer(process.returncode, text)

    def start(self, command: str) -> "subprocess.Popen[str]":
        """The same without waiting; its own process group, as an interactive shell gives a job."""
        return subprocess.Popen(
            self.words(command),
            cwd=self.checkout,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def words(self, command: str) -> list[str]:
        """The command line as a program and its arguments."""
        return ["bash", "-c", command]

    def interrupt(self, command: str, after: str, seconds: float = 300) -> Answer:
        """Type `command`, wait until its output says `after`, press Ctrl-C, and see how it ends."""
        process, text, deadline = self.start(command), "", time.monotonic() + seconds
        assert process.stdout is not None
        while after not in text:
            line = process.stdout.readline()
            assert line, f"{command!r} ended before it said {after!r}:\n{text}"
            assert time.monotonic() < deadline, f"{command!r} did not say {after!r} in {seconds} s:\n{text}"
            text += line
        os.killpg(process.pid, signal.SIGINT)
        rest, _ = process.communicate(timeout=seconds)
        return Answer(process.returncode, text + rest)

    def write_stack(self, name: str, **config: object) -> None:
        """A stack file with these keys on top of the shipped one of that name, if there is one."""
        path = self.checkout / f"Pulumi.{name}.yaml"
        document = yaml.safe_load(path.read_text()) if path.exists() else {"config": {}}
        for key, value in config.items():
            document["config"].pop(f"pd-mi325x:{key}", None)
            if value is not None:
                document["config"][f"pd-mi325x:{key}"] = value
        path.write_text(yaml.safe_dump(document))


def copy_of_checkout(destination: Path) -> Path:
    """The files git would commit, as a clone has them."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, destination / name)
    return destination


def assert_one_clear_line(answer: Answer, *words: str) -> None:
    """A failed command that says what is wrong in one line, with these words in it, and shows no traceback."""
    assert not answer.ok, f"it should have failed:\n{answer.text}"
    assert "Traceback" not in answer.text, answer.text
    assert "unhandled" not in answer.text, answer.text
    lines = [line for line in answer.text.splitlines() if all(word in line for word in words)]
    assert lines, f"no line with all of {words} in:\n{answer.text}"
