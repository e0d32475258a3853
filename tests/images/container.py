"""A container of a built image, under runc: the image's user and variables, no capability, the machine's network."""

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.image_builder.oci_layout import read_image, unpack

_KILL_S = 30
_MOUNTS: list[dict[str, Any]] = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
    {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "mode=1777", "size=2g"]},
    {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
    {"destination": "/tmp", "type": "tmpfs", "source": "tmp", "options": ["mode=1777"]},
]


class Image:
    """An unpacked image, from which containers are made one after another or beside each other."""

    def __init__(self, layout: Path, place: Path, *, consume: bool = False) -> None:
        self.place, self.root = place, place / "root"
        self.config: dict[str, Any] = read_image(layout)[0]["config"]
        unpack(layout, self.root, consume=consume)

    @contextmanager
    def running(
        self, command: Sequence[str], *, mounts: Mapping[str, Path], log: Path, **variables: str
    ) -> "Iterator[subprocess.Popen[bytes]]":
        """A container with `command`, killed at the end. mounts: path inside -> folder outside, which it may write."""
        user, _, group = self.config["User"].partition(":")
        variables = dict(variable.split("=", 1) for variable in self.config["Env"]) | variables
        own = [
            {"destination": inside, "type": "bind", "source": str(outside), "options": ["rbind", "rw"]}
            for inside, outside in mounts.items()
        ]
        specification = {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": int(user), "gid": int(group)},
                "args": list(command),
                "env": [f"{name}={value}" for name, value in variables.items()],
                "cwd": self.config["WorkingDir"],
                "capabilities": {name: [] for name in ("bounding", "effective", "permitted", "ambient")},
                "noNewPrivileges": True,
            },
            "root": {"path": str(self.root), "readonly": False},
            "mounts": [*_MOUNTS, *own],
            # No network of its own: it would have no way out, and the two containers have to meet.
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")]},
        }
        bundle = Path(tempfile.mkdtemp(dir=self.place))
        (bundle / "config.json").write_text(json.dumps(specification))
        runc = ["runc", "--root", str(self.place / "runc")]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*runc, "run", "--bundle", str(bundle), bundle.name], stdout=output, stderr=output
            )
        try:
            yield process
        finally:
            # Its first process: the others of its PID namespace end with it.
            subprocess.run([*runc, "delete", "--force", bundle.name], capture_output=True, check=False)
            process.wait(_KILL_S)
