"""What cannot be fetched here, in a form that the ROCm image's build takes: ROCm, UCX, RIXL, Triton, vLLM's index."""

import base64
import hashlib
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

from serving.versions import platform_versions, versions

ROCM = platform_versions("rocm")
_STAND_INS = Path(__file__).parent / "stand_ins"
# The Triton of the pinned commit calls itself so; its own setup appends the commit.
TRITON = f"3.4+git{ROCM['triton']}"


def source(name: str, folder: Path, **files: str) -> Path:
    """A copy of one of stand_ins/, with files that say the pinned commit or version."""
    made = folder / name
    shutil.copytree(_STAND_INS / name, made)
    for file, text in files.items():
        (made / file).write_text(text)
    return made


def rocm_root(folder: Path) -> Path:
    """/opt/rocm of a build image: a link to a folder with the version, kernels for two GPUs, a compiler's place."""
    root = folder / "rocm-root"
    versioned = root / "opt" / f"rocm-{ROCM['rocm']}"
    target = versions()["image"]["build"]["gpu_target"]
    for name in ("bin/hipcc", "lib/libamdhip64.so.7", f"lib/kernels/a_{target}.co", "lib/kernels/a_gfx1100.co"):
        (versioned / name).parent.mkdir(parents=True, exist_ok=True)
        (versioned / name).write_text(f"a stand-in for {name}\n")
    (root / "opt" / "rocm").symlink_to(versioned.name)
    return root


def wheel_index(folder: Path) -> Path:
    """A package index with vLLM's build for ROCm and its torch."""
    index = folder / "index"
    hip = f"class version:\n    hip = '{ROCM['rocm']}.51831'\n"
    _wheel(index, "torch", "2.9.1+rocm", {"torch/__init__.py": hip}, ())
    modules = {"vllm/__init__.py": "", "vllm/_rocm_C.py": ""}
    _wheel(index, "vllm", ROCM["vllm"], modules, ("torch", "triton"))
    # The one that pip takes with vLLM, and that the pinned one has to replace.
    _wheel(index, "triton", "3.5.1", {"triton/__init__.py": "__version__ = '3.5.1'\n"}, ())
    return index


def _wheel(index: Path, name: str, version: str, modules: Mapping[str, str], requires: tuple[str, ...]) -> None:
    folder = index / name
    folder.mkdir(parents=True)
    file = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {required}\n" for required in requires)
    wheel = "Wheel-Version: 1.0\nGenerator: stand-in\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    content = {**modules, f"{info}/METADATA": metadata, f"{info}/WHEEL": wheel}
    record = "".join(f"{path},{_hash(text)},{len(text.encode())}\n" for path, text in content.items())
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in {**content, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    (folder / "index.html").write_text(f'<a href="{file.name.replace("+", "%2B")}">{file.name}</a>\n')


def _hash(text: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
