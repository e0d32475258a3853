"""One function of infra/ in a Pulumi project of its own, against the simulated cluster, with the real providers.

Where Pulumi runs this file as a program, it reads what to register from the file `piece.json` of the project.
"""

import importlib
import json
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.conftest import ClusterShell
from tests.shell import ROOT, Answer
from tools.rehearsal.cluster import SimulatedCluster
from tools.toolchain.items import path

STACK = "pd-piece"
SETTINGS = {
    "model": "qwen3-235b-a22b-fp8",
    "topology": "1p1d",
    "scenario": "qwen-16k-1k",
    "cluster": {"provider": "existing"},
    "images": {name: f"registry.example/{name}@sha256:{'1' * 64}" for name in ("engine", "benchmark")},
}


class Piece:
    """Deploys `module:function` of infra into a namespace, again and again with other settings."""

    def __init__(self, folder: Path, cluster: SimulatedCluster, namespace: str, function: str) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.namespace = namespace
        self.function = function
        (self.folder / ".venv").symlink_to(ROOT / ".venv")
        project = {"name": "piece", "runtime": {"name": "python", "options": {"virtualenv": ".venv"}}}
        (self.folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
        (self.folder / "__main__.py").write_text("from tests.cluster.piece import program\n\nprogram()\n")
        self.shell = ClusterShell(self.folder, folder / "home", cluster)
        self.shell.env["PYTHONPATH"] = str(ROOT)
        self._borrow_provider()
        assert self.shell.run(f"pulumi stack init {STACK}").ok

    def _borrow_provider(self) -> None:
        """This user's Kubernetes provider among the plugins of the shell's own Pulumi home."""
        plugin = path("kubernetes-provider").parent
        place = Path(self.shell.env["PULUMI_HOME"]) / "plugins" / plugin.name
        if not place.exists():
            place.mkdir(parents=True)  # Pulumi does not look into a link to a folder
            for file in plugin.iterdir():
                (place / file.name).symlink_to(file)

    def settings(self, **settings: Any) -> None:
        """What the next command deploys: these keys of a stack file on top of SETTINGS."""
        piece = {"function": self.function, "namespace": self.namespace, "settings": SETTINGS | settings}
        (self.folder / "piece.json").write_text(json.dumps(piece))

    def up(self, **settings: Any) -> Answer:
        self.settings(**settings)
        return self.pulumi("up --yes --skip-preview")

    def pulumi(self, command: str) -> Answer:
        return self.shell.run(f"pulumi {command} --non-interactive --color never")

    def unchanged(self) -> bool:
        """Whether Pulumi sees no difference between the program, its state and the cluster."""
        return self.pulumi("preview --refresh --expect-no-changes").ok


def program() -> None:
    """The Pulumi program of a Piece."""
    import pulumi
    from pulumi_kubernetes import Provider

    from serving.stack import parse_stack

    piece = json.loads(Path("piece.json").read_text())
    module, function = piece["function"].split(":")
    opts = pulumi.ResourceOptions(provider=Provider("kubernetes"))
    stack = parse_stack(piece["settings"])
    getattr(importlib.import_module(module), function)(stack, STACK, piece["namespace"], opts)
