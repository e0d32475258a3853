"""docker/split_layers.py: a directory in parts that are, copied over each other, the directory again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shell import ROOT

SCRIPT = ROOT / "docker" / "split_layers.py"


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "opt" / "rocm-7"
    for name, size in (("bin/tool", 600_000), ("lib/a.so.1", 700_000), ("lib/deep/b.dat", 300_000), ("z", 500_000)):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(os.urandom(size))
    (source / "share/empty").mkdir(parents=True)
    (source / "share/empty").chmod(0o700)
    (source / "many").mkdir()
    for number in range(100):
        (source / "many" / f"{number:03}").write_bytes(b"x")
    (source / "bin/tool").chmod(0o755)
    (source / "lib/a.so").symlink_to("a.so.1")
    (source / "lib64").symlink_to("lib")
    (source / "lib/deep").chmod(0o750)
    for gpu in ("gfx942", "gfx1100"):
        (source / "lib" / f"kernels-{gpu}.co").write_bytes(b"x" * 200_000)
    return source


def listing(root: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        content = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(root))] = (content, path.lstat().st_mode)
    return found


@pytest.mark.parametrize("move", [False, True])
def test_the_parts_together_are_the_directory(source: Path, tmp_path: Path, move: bool) -> None:
    parts, whole = tmp_path / "layers", listing(source)
    done = run(source, parts, "--as", "/opt/rocm", "--parts", 4, "--limit-mb", 1, *(["--move"] if move else []))
    assert done.returncode == 0, done.stderr
    assert (source / "z").exists() is not move
    assert sorted(part.name for part in parts.iterdir()) == ["0", "1", "2", "3"]
    for part in parts.iterdir():
        # What a registry counts, with the tar's own headers: a part of nothing but small files is twice their size.
        subprocess.run(
            ["tar", "--create", "--blocking-factor=1", f"--file={tmp_path / 'layer'}", "-C", part, "."], check=True
        )
        assert (tmp_path / "layer").stat().st_size <= 1_000_000
        assert f"{part}: " in done.stdout
    together = tmp_path / "image"
    for part in sorted(parts.iterdir()):
        subprocess.run(["cp", "-a", f"{part}/.", together], check=True)
    assert listing(together / "opt" / "rocm") == whole


def test_kernels_for_other_gpus_stay_behind(source: Path, tmp_path: Path) -> None:
    done = run(source, tmp_path / "layers", "--parts", 4, "--limit-mb", 1, "--only-gpu", "gfx942")
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "layers").rglob("*")}
    assert "kernels-gfx942.co" in names
    assert "kernels-gfx1100.co" not in names
    assert {"tool", "z", "lib64"} <= names


@pytest.mark.parametrize(
    ("name", "stays"),
    [
        ("gfx942.kdb", True),
        ("gfx942130.db.txt", True),  # 304 compute units: MI300X and MI325X
        ("gfx942130.HIP.fdb.txt", True),
        ("gfx942e4.kdb", True),  # 228: MI300A
        ("gfx90a68.db.txt", False),
        ("gfx90878.kdb", False),
        ("gfx1030_36.db", False),
        ("Kernels.so-000-gfx942-xnack+.hsaco", True),
        ("Kernels.so-000-gfx90a-xnack-.hsaco", False),
        ("both-gfx90a-gfx942.co", True),
        ("lib-gfx9-4-generic.co", True),
        ("libgfxr.so", True),
    ],
)
def test_a_gpu_s_own_files_stay_however_they_name_it(tmp_path: Path, name: str, stays: bool) -> None:
    source = tmp_path / "opt"
    (source / "share").mkdir(parents=True)
    (source / "share" / name).write_text("x")
    done = run(source, tmp_path / "layers", "--parts", 1, "--limit-mb", 1, "--only-gpu", "gfx942")
    assert done.returncode == 0, done.stderr
    assert bool(list((tmp_path / "layers").rglob(name))) is stays


def test_what_does_not_fit_fails_the_build_in_one_line(source: Path, tmp_path: Path) -> None:
    too_few = run(source, tmp_path / "layers", "--parts", 2, "--limit-mb", 1)
    assert too_few.returncode == 1
    assert "parts of 1,000,000, not 2" in too_few.stderr
    (source / "huge").write_bytes(b"x" * 1_000_001)
    too_large = run(source, tmp_path / "layers", "--parts", 9, "--limit-mb", 1)
    assert too_large.returncode == 1
    assert "huge has 1,001,984 bytes" in too_large.stderr
    assert "Traceback" not in too_few.stderr + too_large.stderr
    assert not (tmp_path / "layers").exists()
