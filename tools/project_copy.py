"""A copy of the project's YAML files with a Pulumi backend of its own, for `make demo` and `make rehearse`.

Pulumi writes into a stack's file when it makes the stack. In a copy neither the checkout nor the user's own Pulumi
backend is touched.
"""

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tools.toolchain import checkout
from tools.toolchain.console import say
from tools.toolchain.errors import ToolchainError
from tools.toolchain.versions import ROOT


class ProjectCopy:
    """Folder `place`; `item` begins the lines it prints, `again` is what a user types to go on after a failure."""

    def __init__(self, place: Path, item: str, again: str) -> None:
        self.place = place
        self._item = item
        self._again = again

    def prepare(self, stack: str, changes: Mapping[str, Any] | None = None) -> None:
        """The copy of one stack, selected; `changes` are settings on top of its file. What exists is kept."""
        (self.place / "backend").mkdir(parents=True, exist_ok=True)
        passphrase = self.place / "passphrase"
        if not passphrase.exists():
            passphrase.touch(mode=0o600)
            passphrase.write_text(secrets.token_hex(32))
        for name in ("infra", ".venv"):
            if not (self.place / name).is_symlink():
                (self.place / name).symlink_to(ROOT / name)
        file = f"Pulumi.{stack}.yaml"
        document = yaml.safe_load((ROOT / file).read_text())
        document["config"] |= {f"pd-mi325x:{key}": value for key, value in (changes or {}).items()}
        if (salt := self._salt(self.place / file)) is not None:
            document["encryptionsalt"] = salt
        (self.place / file).write_text(yaml.safe_dump(document, sort_keys=False))
        shutil.copy(ROOT / "Pulumi.yaml", self.place)
        self.pulumi("stack", "select", "--create", stack)

    def deployed(self, stack: str) -> bool:
        """Whether the backend knows the stack."""
        return bool(list((self.place / "backend").glob(f".pulumi/stacks/*/{stack}.json")))

    def pulumi(self, *arguments: str) -> None:
        """Run Pulumi on the copy, its output passed through. Raises ToolchainError when it fails."""
        if self.run(["pulumi", *arguments, "--non-interactive"], self.place, self.environment()):
            raise ToolchainError(self._item, f"pulumi {arguments[0]} failed (above)", self._again)

    def output(self, stack: str, name: str) -> str:
        """A stack output as JSON."""
        command = ["pulumi", "stack", "output", name, "--json", "--stack", stack]
        environment = self.environment()
        return subprocess.run(
            command, cwd=self.place, env=environment, check=True, capture_output=True, text=True
        ).stdout

    def run(self, command: Sequence[str | Path], cwd: Path, env: dict[str, str], text: str = "") -> int:
        """Run a command in a process group of its own, so that it hears of an interruption once, whoever says it.

        A second Ctrl-C, which Pulumi would get from the terminal and from here, makes it leave without cleaning up.
        """
        process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.PIPE, text=True, process_group=0)
        while process.returncode is None:
            try:
                process.communicate(text)
            except KeyboardInterrupt:
                say(self._item, f"interrupted: waiting for {Path(command[0]).name} to clean up")
                process.send_signal(signal.SIGINT)
                text = ""
        return process.returncode

    def environment(self) -> dict[str, str]:
        """Environment of Pulumi on this copy. The user's own stack, backend and passphrase are none of its business."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")},
            "PATH": os.pathsep.join((str(checkout.VENV / "bin"), os.environ.get("PATH", os.defpath))),
            "PULUMI_HOME": str(self.place / "home"),
            "PULUMI_BACKEND_URL": f"file://{self.place / 'backend'}",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self.place / "passphrase"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            # What is needed is there; without this Pulumi goes out to look for the providers of the Python packages.
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }

    @staticmethod
    def _salt(path: Path) -> str | None:
        return (yaml.safe_load(path.read_text()) or {}).get("encryptionsalt") if path.exists() else None
