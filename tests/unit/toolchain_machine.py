"""A machine as a new user has it, for tests of the toolchain: a copy of this tree, and none of what it looks for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.toolchain.find_python import find_python
from tools.toolchain.find_uv import find_uv

ROOT = Path(__file__).resolve().parents[2]
# git, sh and coreutils are here.
BARE_PATH = "/usr/bin:/bin"
# A distribution may have put these there too (Debian's Go); a test that found them would start a real build.
SOUGHT = (
    "go",
    "gofmt",
    "uv",
    "uvx",
    "pyenv",
    "pulumi",
    "kubectl",
    "runc",
    "debootstrap",
    "fc-match",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
# Answers what the toolchain asks Go. What it "builds" prints its own command line; a file `broken` makes it fail, and
# while there is a file `slow` it writes down its process id and takes its time.
GO = """here=$(dirname "$0")
case "$1 $2" in
    "version ") echo go version go99.0.1 linux/amd64 ;;
    "list -m") echo "$here/modules/$5" ;;
    "list -deps") ;;
    "list "*) printf 'unsafe false\\nmain true\\n' ;;
    "build "*)
        if [ -e "$here/broken" ]; then echo error: does not compile; exit 1; fi
        if [ -e "$here/slow" ]; then echo $$ >"$here/slow"; sleep 600; fi
        words="$*"
        while [ "$1" != -o ]; do shift; done
        mkdir -p "$(dirname "$2")"
        printf '#!/bin/sh\\necho "%s"\\n' "$words" >"$2"
        chmod +x "$2" ;;
esac"""
# Files of the modules that are put beside a program.
MODULE_FILES = {
    "github.com/pulumi/pulumi-kubernetes/provider/v4/cmd/pulumi-resource-kubernetes": (
        "schema.json",
        "terraform-mapping.json",
        "main.go",
    ),
    "sigs.k8s.io/kwok/kustomize/stage/node/fast": ("node-initialize.yaml", "kustomization.yaml", "README.md"),
    "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease": ("node-heartbeat-with-lease.yaml",),
    "sigs.k8s.io/kwok/kustomize/stage/pod/fast": ("pod-ready.yaml", "pod-delete.yaml", "kustomization.yaml"),
    "github.com/ray-project/kuberay/ray-operator/config/crd/bases": ("rayclusters.yaml", "rayservices.yaml"),
}


def link_programs(path: str, folder: Path) -> None:
    """Make `folder` hold the programs of a PATH, without those that the toolchain looks for."""
    folder.mkdir()
    for place in (place for part in path.split(":") for place in Path(part).iterdir()):
        link = folder / place.name
        if place.name not in SOUGHT and not place.name.startswith("pulumi-") and not link.is_symlink():
            link.symlink_to(place)


class Machine:
    """A copy of the tree, an empty cache, and a PATH of the bare system and what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a checkout"
        self.cache = folder / "cache"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.system = folder / "system"
        link_programs(BARE_PATH, self.system)
        shutil.copytree(ROOT / "tools", self.root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "requirements", self.root / "requirements")
        for name in ("versions.toml", "pyproject.toml", "Pulumi.yaml"):
            shutil.copy(ROOT / name, self.root)
        # The rest of the environment stays: it may hold the proxy and certificates that downloads need.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PULUMI_", "PYENV_"))}
        self.environment = {
            **kept,
            "PATH": f"{self.bin}:{self.system}",
            "HOME": str(folder),
            "PYENV_ROOT": str(folder / "pyenv"),
            "PULUMI_HOME": str(folder / "pulumi"),
            "PD_MI325X_CACHE": str(self.cache),
            # Downloads are shared with the real environments; what is built is not.
            "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv")),
        }

    def command(self, *words: str, module: str = "tools.toolchain") -> list[str]:
        return [sys.executable, "-m", module, *words]

    def run(self, *words: str, module: str = "tools.toolchain", **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words, module=module),
            cwd=self.root,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def program(self, name: str, script: str) -> Path:
        place = self.bin / name
        place.write_text(f"#!/bin/sh\n{script}\n")
        place.chmod(0o755)
        return place

    def with_uv_and_python(self) -> None:
        uv = find_uv()
        assert uv is not None, "run `make tools`"
        (self.bin / "uv").symlink_to(uv)
        (self.bin / "python3.12").symlink_to(find_python())

    def with_go(self) -> None:
        """A stand-in: what is tested is what becomes of a program, not the compiler."""
        self.program("go", GO)
        for folder, names in MODULE_FILES.items():
            place = self.bin / "modules" / folder
            place.mkdir(parents=True)
            for name in names:
                (place / name).write_text(f"content of {name}")
                (place / name).chmod(0o444)  # as Go's module cache

    def path(self, name: str) -> Path:
        """What `path NAME` says."""
        result = self.run("path", name)
        assert result.returncode == 0, result.stderr
        return Path(result.stdout.strip())

    def with_small_benchmark_environment(self) -> None:
        """One real package instead of 139: what is tested is the making, not the content."""
        lines = (ROOT / "requirements" / "tools.txt").read_text().splitlines()
        start = next(number for number, line in enumerate(lines) if line.startswith("iniconfig=="))
        entry = [lines[start], *(line for line in lines[start + 1 : start + 3] if line.startswith("    --hash"))]
        (self.root / "requirements" / "benchmark.txt").write_text("\n".join(entry).rstrip(" \\") + "\n")


def one_error_line(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode == 1, result.stdout + result.stderr
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    return lines[0]
