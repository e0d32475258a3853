"""Fill a directory with one commit of a Hugging Face repository. Runs in the download Job's pod, nowhere else.

    python -m serving.weights_download OWNER/NAME --revision COMMIT --directory /models/OWNER--NAME/COMMIT

A directory whose `.complete` names the commit is left alone. Otherwise missing files are fetched, half-fetched ones go
on where they stopped, names and sizes are held against the hub's own list, and only then is `.complete` written.
What passes (network, a hub that is away) is tried again for `--patience` seconds. Exit code 0 or 1; the last line of
the log says why. Reads HF_TOKEN.
"""

import argparse
import errno
import os
import sys
import time
from pathlib import Path
from typing import Any

COMPLETE = ".complete"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 300.0
# What no later try changes. The hub: no or wrong token, no access, no such repository or commit. The directory: not
# writable for this user, full.
_FINAL_STATUS = (401, 403, 404)
_FINAL_ERRNO = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)


class NotACommit(Exception):
    """One line for the log."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m serving.weights_download")
    parser.add_argument("repository")
    parser.add_argument("--revision", required=True)
    parser.add_argument("--directory", required=True, type=Path)
    parser.add_argument("--patience", type=float, default=0.0, help="seconds")
    given = parser.parse_args(arguments)
    failing_since, pause = time.monotonic(), _FIRST_PAUSE_S
    while True:
        started = time.monotonic()
        try:
            download(given.repository, given.revision, given.directory)
        except Exception as error:  # network errors are of another class in every major version of huggingface_hub
            now = time.monotonic()
            if now - started > _LONGEST_PAUSE_S:  # it had got somewhere
                failing_since, pause = now, _FIRST_PAUSE_S
            _say(f"error: {_one_line(error)}")
            if _is_final(error) or now + pause - failing_since > given.patience:
                return 1
        else:
            return 0
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def download(repository: str, revision: str, directory: Path) -> None:
    """Raises NotACommit, OSError, or whatever the hub's client does."""
    marker = directory / COMPLETE
    if marker.is_file() and marker.read_text().strip() == revision:
        _say(f"{directory} holds {repository} at {revision} already")
        return
    sizes = _listing(repository, revision)
    _say(f"{repository} at {revision}: {len(sizes)} files, {sum(sizes.values()) / 1e9:.1f} GB")
    directory.mkdir(parents=True, exist_ok=True)
    for name in _wrong_files(directory, sizes):
        # The client trusts its own note that a file is complete and would not look (huggingface_hub 0.36 and 1.33).
        (directory / name).unlink(missing_ok=True)
    _fetch(repository, revision, directory)
    if wrong := _wrong_files(directory, sizes):
        raise OSError(f"{len(wrong)} files are missing or of another size than the hub says, for example {wrong[0]}")
    # Written beside and renamed, so that nobody ever reads half a marker.
    unfinished = directory / f"{COMPLETE}.{os.getpid()}"
    unfinished.write_text(f"{revision}\n")
    unfinished.rename(marker)
    _say("complete")


def _listing(repository: str, revision: str) -> dict[str, int]:
    """File -> size in bytes, as the hub lists that commit."""
    from huggingface_hub import HfApi  # pyright: ignore[reportMissingImports]

    info: Any = HfApi().model_info(repository, revision=revision, files_metadata=True)
    if info.sha != revision:
        raise NotACommit(f"{revision!r} is not a commit; weights.revision: {info.sha} is what it names today")
    return {file.rfilename: file.size for file in info.siblings}


def _fetch(repository: str, revision: str, directory: Path) -> None:
    from huggingface_hub import snapshot_download  # pyright: ignore[reportMissingImports]

    # `local_dir` keeps the repository's own names, without links, and its own notes of what is half done.
    snapshot_download(repository, revision=revision, local_dir=directory)


def _wrong_files(directory: Path, sizes: dict[str, int]) -> list[str]:
    def size(name: str) -> int:
        path = directory / name
        return path.stat().st_size if path.is_file() else -1

    return [name for name, wanted in sizes.items() if size(name) != wanted]


def _is_final(error: Exception) -> bool:
    status = getattr(getattr(error, "response", None), "status_code", None)
    return isinstance(error, NotACommit) or status in _FINAL_STATUS or getattr(error, "errno", None) in _FINAL_ERRNO


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())[:500]
    return text if isinstance(error, NotACommit) else f"{type(error).__name__}: {text}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
