"""What the killed engines of a local head leave in /dev/shm."""

import os
import subprocess
import sys
from pathlib import Path

from infra.provider.processes import HEAD_VARIABLE, shared_memory_of

_ENGINE = """
import os, sys
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
memory = SharedMemory(create=True, size=4096)
Path(f"/dev/shm/__KMP_REGISTERED_LIB_{os.getpid()}_0").touch()
print(memory.name, flush=True)
sys.stdin.read()
"""


def test_files_of_a_heads_processes_and_of_no_others(tmp_path: Path) -> None:
    engine = subprocess.Popen(
        [sys.executable, "-c", _ENGINE],
        env={**os.environ, HEAD_VARIABLE: str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert engine.stdin is not None
    assert engine.stdout is not None
    registered = Path(f"/dev/shm/__KMP_REGISTERED_LIB_{engine.pid}_0")
    memory = Path("/dev/shm") / engine.stdout.readline().strip()
    try:
        assert shared_memory_of(str(tmp_path)) == [registered, memory]
        assert shared_memory_of(str(tmp_path / "other")) == []
    finally:
        engine.kill()
        engine.communicate()
        registered.unlink()
        memory.unlink(missing_ok=True)
