"""Compiles requirements/*.in into hash-pinned requirements/*.txt (`make lock`).

A .in file holds names; where versions.toml pins a name, that version is taken. Existing pins of everything else stay
unless `--upgrade` is given.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.toolchain.cache import cache_root
from tools.toolchain.console import Stopwatch, duration, say
from tools.toolchain.errors import ToolchainError
from tools.toolchain.find_uv import ensure_uv
from tools.toolchain.process import work
from tools.toolchain.versions import ROOT, versions

REQUIREMENTS = ROOT / "requirements"
# Distributions that differ between a build for CUDA or CPU and one for ROCm, or exist for one of them only.
_ACCELERATOR = re.compile(r"(torch|triton|nvidia-|cuda-|nixl|vllm|flashinfer|xgrammar$|numba$|llvmlite$)")
_NAME = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)(?P<extras>\[[^\]]*\])?$")


def pins(requirement_set: str) -> dict[str, str]:
    """Distribution -> version that versions.toml fixes for one requirement set.

    `runtime-PLATFORM` sets take the platform's table; every other set takes the top-level tables with a distribution.
    """
    data = versions()
    if requirement_set.startswith("runtime-"):
        platform: dict[str, Any] = data["platform"][requirement_set.removeprefix("runtime-")]
        names: dict[str, str] = platform.get("distribution", {})
        return {names.get(key, key): value for key, value in platform.items() if isinstance(value, str)}
    return {table["distribution"]: table["version"] for table in data.values() if "distribution" in table}


def pinned_lines(source: Path, requirement_set: str) -> list[str]:
    """The names of a .in file, each with the version that versions.toml has for it, if any."""
    fixed = pins(requirement_set)
    lines: list[str] = []
    for raw in source.read_text(encoding="utf-8").splitlines():
        text = raw.split("#")[0].strip()
        if not text:
            continue
        match = _NAME.match(text)
        if match is None:
            raise ToolchainError(source.name, f"`{text}` is not a bare name", "put its version into versions.toml")
        version = fixed.get(match["name"])
        lines.append(f"{text}=={version}" if version else text)
    return lines


def compile_set(requirement_set: str, *, upgrade: bool) -> None:
    """Resolve one set and write its .txt."""
    watch = Stopwatch()
    target = REQUIREMENTS / f"{requirement_set}.txt"
    overrides = REQUIREMENTS / f"{requirement_set}.overrides.in"
    cut_off: dict[str, str] = versions()["resolution"].get(requirement_set, {})
    with tempfile.TemporaryDirectory() as scratch:
        wanted = _write(Path(scratch) / "wanted.in", pinned_lines(target.with_suffix(".in"), requirement_set))
        options: list[str | Path] = ["--python-version", versions()["python"]["version"], "--generate-hashes"]
        # Nothing of this machine goes into the file: no index, no paths, no command line.
        options += ["--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate"]
        if overrides.exists():
            options += ["--override", _write(Path(scratch) / "overrides.in", pinned_lines(overrides, requirement_set))]
        if cut_off:
            options += ["--exclude-newer", cut_off["exclude_newer"]]
        if upgrade:
            options.append("--upgrade")
        output = Path(scratch) / "pinned.txt"
        if target.exists():
            output.write_bytes(target.read_bytes())
        log = cache_root() / "log" / f"lock-{requirement_set}.log"
        log.unlink(missing_ok=True)
        command: list[str | Path] = [ensure_uv(), "pip", "compile", wanted, *options, "--output-file", output]
        work(requirement_set, command, log=log, progress=lambda elapsed: f"resolving, {duration(elapsed)}")
        body = "".join(line for line in output.read_text().splitlines(keepends=True) if not line.startswith("#"))
    header = f"# Written by `make lock` from {requirement_set}.in and versions.toml. Do not edit.\n"
    target.write_text(header + body, encoding="utf-8")
    say(requirement_set, f"{body.count('==')} pins in {target.relative_to(ROOT)} ({watch})")


def write_rocm_constraints() -> None:
    """The versions that the ROCm image may take: what ran on CPU, where it is not the accelerator's own.

    Its own wheels come from an index that cannot be resolved everywhere, so that image has no lock file.
    """
    pinned = re.findall(r"^([A-Za-z0-9_.-]+)==([^ ;\\]+)", (REQUIREMENTS / "runtime-cpu.txt").read_text(), re.MULTILINE)
    lines = [f"{name}=={version}" for name, version in pinned if not _ACCELERATOR.match(name)]
    header = "# Written by `make lock` from runtime-cpu.txt: what is not the accelerator's own. Do not edit.\n"
    (ROOT / "docker" / "rocm-constraints.txt").write_text(header + "\n".join(lines) + "\n", encoding="utf-8")


def _write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def main() -> int:
    """Compile the named sets, or all of them."""
    known = sorted(path.stem for path in REQUIREMENTS.glob("*.in") if not path.stem.endswith(".overrides"))
    parser = argparse.ArgumentParser(prog="python3 -m tools.lock", description="Pin requirements/*.in with hashes.")
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"which to compile (default: all of {', '.join(known)})")
    parser.add_argument(
        "--upgrade", action="store_true", help="take the newest of everything versions.toml leaves open"
    )
    arguments = parser.parse_args()
    try:
        for name in arguments.sets or known:
            if name not in known:
                raise ToolchainError("lock", f"no requirements/{name}.in", f"choose from {', '.join(known)}")
            compile_set(name, upgrade=arguments.upgrade)
        write_rocm_constraints()
    except ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
