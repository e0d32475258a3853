"""A cache that cannot be used is one line: what, where, what to do."""

import errno
from pathlib import Path

import pytest
from toolchain_machine import Machine, one_error_line

from tools.toolchain import cache
from tools.toolchain.errors import ToolchainError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process's own cache, empty."""
    place = tmp_path / "cache"
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(place))
    return place


def test_link_to_a_cache_is_the_cache(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    folder.symlink_to(tmp_path / "disk")
    assert cache.cache_root() == tmp_path / "disk"


def test_cache_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = Machine(tmp_path).run("ensure", "benchmark", PD_MI325X_CACHE=str(tmp_path / "file" / "cache"))
    line = one_error_line(result)
    assert f"cannot write {tmp_path / 'file' / 'cache'}: Not a directory" in line
    assert "PD_MI325X_CACHE" in line


def test_cache_that_is_there_and_cannot_be_written(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.cache.mkdir()
    (machine.cache / "locks").touch()  # the tests may run as root, whom no mode keeps from writing
    line = one_error_line(machine.run("ensure", "benchmark"))
    assert str(machine.cache / "locks") in line
    assert "PD_MI325X_CACHE" in line


def test_part_of_the_cache_that_cannot_be_written(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.with_uv_and_python()
    machine.cache.mkdir()
    (machine.cache / "log").touch()
    line = one_error_line(machine.run("ensure", "benchmark"))
    assert str(machine.cache / "log") in line
    assert "make sure that you may write there" in line


@pytest.mark.parametrize("method", ["mkdir", "open"])
@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_lock_that_the_system_refuses(folder: Path, monkeypatch: pytest.MonkeyPatch, method: str, code: int) -> None:
    folder.mkdir()
    genuine = getattr(Path, method)

    def refuse(self: Path, *arguments: object, **options: object) -> object:
        if "locks" in self.parts:
            raise OSError(code, "no", str(self))
        return genuine(self, *arguments, **options)

    monkeypatch.setattr(Path, method, refuse)
    with (
        pytest.raises(ToolchainError, match=r"cannot write .*locks/name.lock: no; make it yours"),
        cache.exclusive("item", "name"),
    ):
        pass


def test_error_under_the_lock_is_not_taken_for_one_of_the_cache(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match="mine"), cache.exclusive("item", "name"):
        raise FileNotFoundError("mine")
    assert (folder / "locks" / "name.lock").exists()
