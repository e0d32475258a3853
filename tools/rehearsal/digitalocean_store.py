"""The stand-in's memory: what exists, in a file that tests read and change, and the faults they ask for.

$PD_REHEARSAL_STATE/objects.json: {id: {"kind", "inputs", "outputs"}}; a test that takes something out, or changes it,
plays somebody at DigitalOcean's control panel. $PD_REHEARSAL_STATE/faults.json, all optional:
{"delay": {kind: seconds}, "fail": {kind: message}, "versions": [slugs that DOKS offers]}. Delays and failures hold for
creating and updating.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Objects = dict[str, dict[str, Any]]


class Store:
    def __init__(self, directory: Path) -> None:
        self._objects = directory / "objects.json"
        self._faults = directory / "faults.json"
        self._lock = directory / "lock"
        directory.mkdir(parents=True, exist_ok=True)

    def read(self) -> Objects:
        return _json(self._objects)

    @contextmanager
    def change(self) -> Iterator[Objects]:
        """What exists, to be changed. Other processes wait; nothing is written when the block raises."""
        with self._lock.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            objects = self.read()
            yield objects
            scratch = self._objects.with_name(f"{self._objects.name}.{os.getpid()}")
            scratch.write_text(json.dumps(objects, indent=1, sort_keys=True))
            scratch.replace(self._objects)

    def delay(self, kind: str) -> float:
        """Seconds that making or changing one takes."""
        return float(_json(self._faults).get("delay", {}).get(kind, 0))

    def failure(self, kind: str) -> str | None:
        """Why making or changing one is refused."""
        return _json(self._faults).get("fail", {}).get(kind)

    def versions(self) -> list[str] | None:
        """Kubernetes versions on offer, when a test sets them."""
        return _json(self._faults).get("versions")


def _json(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text()) if file.exists() else {}
