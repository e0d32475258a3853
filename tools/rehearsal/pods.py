"""What simulated pods say and how they end: directories and plays in the state directory.

A play decides it beforehand for pods whose names nobody knows yet. It matches namespace, name and node with shell
patterns, and the latest that matches a pod counts. Without one a pod does what is usual for its kind
(fabric_stand_in.py), or has an empty log and runs for ever.

    pods/plays/0001.json
    pods/<namespace>/<name>/log       plain text, served by kubelet.py; append to it while the pod runs
    pods/<namespace>/<name>/files/    what exec sees over this machine's own files: files/results is /results
"""

import fnmatch
import json
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

PREPARED = "pd-mi325x/rehearsal-prepared"  # annotation: the pod's directory is there, it may start
COMPLETE = "pd-mi325x/rehearsal-complete"  # annotation, set by a test or by a play: `succeeded` or `failed`
Outcome = Literal["succeeded", "failed"]


@dataclass(frozen=True)
class Play:
    """`files` is a folder that is copied; `outcome` None: the pod runs until its annotation COMPLETE is set."""

    pod: str
    namespace: str = "*"
    node: str = "*"
    log: str = ""
    files: str | None = None
    outcome: Outcome | None = None
    after_s: float = 0.0

    def matches(self, namespace: str, pod: str, node: str) -> bool:
        looked_at = ((namespace, self.namespace), (pod, self.pod), (node, self.node))
        return all(fnmatch.fnmatchcase(name, pattern) for name, pattern in looked_at)


@dataclass(frozen=True)
class PodDirectory:
    """One pod's directory."""

    path: Path

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def files(self) -> Path:
        return self.path / "files"

    def append_log(self, text: str) -> None:
        """More output of the container; who follows the log sees it at once."""
        with self.log.open("a") as file:
            file.write(text)


class Pods:
    """The folder `pods` of a cluster's state directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "plays").mkdir(parents=True, exist_ok=True)

    def play(self, play: Play) -> None:
        """Decide for pods that do not exist yet. Written in one step: kubelet.py never reads half of it."""
        number = len(list((self.root / "plays").glob("*.json")))
        with tempfile.NamedTemporaryFile("w", dir=self.root, delete=False) as file:
            json.dump(asdict(play), file)
        Path(file.name).rename(self.root / "plays" / f"{number:04}.json")

    def play_of(self, namespace: str, pod: str, node: str = "", usual: Play | None = None) -> Play:
        """The latest play for this pod, else what is usual, else one in which it runs silently and for ever."""
        for path in sorted((self.root / "plays").glob("*.json"), reverse=True):
            play = Play(**json.loads(path.read_text()))
            if play.matches(namespace, pod, node):
                return play
        return usual or Play(pod)

    def directory(self, namespace: str, pod: str) -> PodDirectory:
        """Where its log and files are, or will be."""
        return PodDirectory(self.root / namespace / pod)

    def prepare(self, namespace: str, pod: str, node: str = "", usual: Play | None = None) -> Play:
        """Make a pod's directory as its play says, in place of one that an earlier pod of that name had."""
        play, directory = self.play_of(namespace, pod, node, usual), self.directory(namespace, pod)
        shutil.rmtree(directory.path, ignore_errors=True)
        directory.path.mkdir(parents=True)
        directory.log.write_text(play.log)
        if play.files:
            shutil.copytree(play.files, directory.files)
        directory.files.mkdir(exist_ok=True)
        return play
