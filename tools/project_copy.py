"""A copy of the project's YAML files with a Pulumi backend of its own, for `make demo` and `make rehearse`.

Pulumi writes into a stack's file when it makes the stack. In a copy neither the checkout nor the user's own Pulumi
backend is touched.
"""

import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tools import foreground
from tools.toolchain import checkout
from tools.toolchain.errors import ToolchainError
from tools.toolchain.versions import ROOT

_SALT = "encryptionsalt:"


class ProjectCopy:
    """Folder `place`; `item` begins the lines it prints, `again` is what a user types to go on after a failure."""

    def __init__(self, place: Path, item: str, again: str) -> None:
        self.place = place
        self._item = item
        self._again = again

    def prepare(self, stack: str, text: str | None = None) -> None:
        """The copy of one stack, selected; its file holds `text`, or what the checkout's does. What exists is kept."""
        (self.place / "backend").mkdir(parents=True, exist_ok=True)
        passphrase = self.place / "passphrase"
        if not passphrase.exists():
            passphrase.touch(mode=0o600)
            passphrase.write_text(secrets.token_hex(32))
        for name in ("infra", ".venv"):
            if not (self.place / name).is_symlink():
                (self.place / name).symlink_to(ROOT / name)
        file = f"Pulumi.{stack}.yaml"
        _write_stack_file(self.place / file, (ROOT / file).read_text() if text is None else text)
        shutil.copy(ROOT / "Pulumi.yaml", self.place)
        self.pulumi("stack", "select", "--create", stack)

    def deployed(self, stack: str) -> bool:
        """Whether the backend knows the stack."""
        return bool(list((self.place / "backend").glob(f".pulumi/stacks/*/{stack}.json")))

    def pulumi(self, *arguments: str) -> None:
        """Run Pulumi on the copy, its output passed through. Raises ToolchainError when it fails."""
        command = ["pulumi", *arguments, "--non-interactive"]
        if foreground.run(self._item, command, cwd=self.place, env=self.environment()):
            raise ToolchainError(self._item, f"pulumi {arguments[0]} failed (above)", self._again)

    def output(self, stack: str, name: str) -> str:
        """A stack output as JSON. Raises ToolchainError when Pulumi cannot tell; its words are above."""
        command = ["pulumi", "stack", "output", name, "--json", "--stack", stack]
        environment = self.environment()
        done = subprocess.run(command, cwd=self.place, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise ToolchainError(self._item, f"pulumi stack output {name} failed (above)", self._again)
        return done.stdout

    def environment(self) -> dict[str, str]:
        """Environment of Pulumi on this copy."""
        own = private_pulumi(os.environ, home=self.place / "home", backend=self.place / "backend")
        return {**own, "PULUMI_CONFIG_PASSPHRASE_FILE": str(self.place / "passphrase")}


def private_pulumi(base: Mapping[str, str], *, home: Path, backend: Path) -> dict[str, str]:
    """`base` for a Pulumi with a home and a backend of its own; the passphrase is to be added.

    The user's own stack, backend and passphrase are none of its business.
    """
    return {
        **{name: value for name, value in base.items() if not name.startswith("PULUMI_")},
        "PATH": os.pathsep.join((str(checkout.VENV / "bin"), base.get("PATH", os.defpath))),
        "PULUMI_HOME": str(home),
        "PULUMI_BACKEND_URL": f"file://{backend}",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        # What is needed is there; without this Pulumi goes out to look for the providers of the Python packages.
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }


def _write_stack_file(path: Path, text: str) -> None:
    """`text` with the salt that the copy has; one of the checkout's would belong to another passphrase.

    Line by line, because a YAML parser is not in the standard library, and Pulumi writes the salt on a line of its own.
    """
    earlier = path.read_text().splitlines() if path.exists() else []
    kept = [line for line in text.splitlines() if not line.startswith(_SALT)]
    path.write_text("\n".join([*kept, *(line for line in earlier if line.startswith(_SALT))]) + "\n")
