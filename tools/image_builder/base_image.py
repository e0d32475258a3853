"""A stand-in for the base image `python:3.12-slim`: Debian by debootstrap, and this machine's Python in /usr/local.

Where no registry can be reached. It has the machine's package sources and certificates, so that `apt-get` and `pip` in
a RUN reach what they reach here.
"""

import os
import shutil
import sys
from pathlib import Path

from tools.image_builder.oci_layout import write_layout
from tools.toolchain import image_builders
from tools.toolchain.cache import cache_root, content_key, exclusive
from tools.toolchain.console import Stopwatch, say
from tools.toolchain.process import work

ITEM = "images"
_SUITE = "bookworm"  # as the image that it stands in for
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_HOSTS = (_CERTIFICATES, Path("/usr/local/share/ca-certificates"), Path("/etc/apt/sources.list.d"))
# What a Python built on Debian is linked to; the real image has them.
_LIBRARIES = "ca-certificates,libbz2-1.0,libffi8,liblzma5,libncursesw6,libreadline8,libsqlite3-0,libssl3,zlib1g"
_PYTHON_LEAVES_OUT = shutil.ignore_patterns("site-packages", "test", "__pycache__", "*.a", "idlelib", "tkinter")


def base_layout() -> Path:
    """Where it lies, as an OCI layout tagged `latest`; made when it is not there. Raises ToolchainError."""
    python = Path(sys.base_prefix)
    key = content_key([Path(__file__).read_bytes(), str(python).encode(), sys.version.encode(), *_own_content()])
    layout = cache_root() / "images" / f"base-{key}"
    if not layout.exists():
        with exclusive(ITEM, layout.name):
            if not layout.exists():
                _make(python, layout)
    return layout


def _own_content() -> list[bytes]:
    files = [path for place in _HOSTS for path in ([place] if place.is_file() else sorted(place.glob("*")))]
    return [path.read_bytes() for path in files if path.is_file()]


def _make(python: Path, layout: Path) -> None:
    image_builders.ensure()
    watch = Stopwatch()
    say(ITEM, "making a Debian with Python as the base image; usually a minute")
    scratch = layout.with_name(f"{layout.name}.{os.getpid()}")
    log = cache_root() / "log" / "base-image.log"
    log.unlink(missing_ok=True)
    root = scratch / "root"
    try:
        command = ["debootstrap", "--variant=minbase", f"--include={_LIBRARIES}", _SUITE, str(root)]
        work(ITEM, command, log=log, progress=lambda elapsed: f"debootstrap, {elapsed:.0f} s")
        _add_python(python, root / "usr" / "local")
        _add_hosts(root)
        work(ITEM, ["ldconfig", "-r", str(root)], log=log, progress=lambda elapsed: f"ldconfig, {elapsed:.0f} s")
        env = {"PATH": "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"}
        env |= {name: str(_CERTIFICATES) for name in ("SSL_CERT_FILE", "PIP_CERT")}
        write_layout(root, scratch / "layout", env)
        (scratch / "layout").replace(layout)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    say(ITEM, f"made in {watch}")


def _add_python(python: Path, prefix: Path) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for folder in (f"lib/{version}", f"include/{version}"):
        shutil.copytree(python / folder, prefix / folder, ignore=_PYTHON_LEAVES_OUT, symlinks=True)
    for library in (python / "lib").glob("libpython*.so*"):
        shutil.copy2(library, prefix / "lib" / library.name, follow_symlinks=False)
    shutil.copy2(python / "bin" / version, prefix / "bin" / version)
    for name in ("python", "python3"):
        (prefix / "bin" / name).symlink_to(version)
    for name in ("pip", "pip3"):
        script = prefix / "bin" / name
        script.write_text(f'#!/bin/sh\nexec /usr/local/bin/{version} -m pip "$@"\n')
        script.chmod(0o755)
    (prefix / "lib" / version / "site-packages").mkdir()
    for package in (python / "lib" / version / "site-packages").glob("pip*"):
        shutil.copytree(package, prefix / "lib" / version / "site-packages" / package.name)


def _add_hosts(root: Path) -> None:
    for place in _HOSTS:
        target = root / place.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            shutil.copytree(place, target, dirs_exist_ok=True)
        elif place.exists():
            shutil.copy2(place, target)
    sources = root / "etc/apt/sources.list"
    if any((root / "etc/apt/sources.list.d").glob("*.sources")):
        sources.unlink(missing_ok=True)  # debootstrap's own, of the same packages
