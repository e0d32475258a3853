"""A root file system as an OCI image layout: a folder that BuildKit takes for a base image."""

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_TAG = "latest"


def write_layout(root: Path, layout: Path, env: Mapping[str, str]) -> None:
    """Write `root`, as one layer of an image tagged `latest`, into `layout`."""
    (layout / "blobs" / "sha256").mkdir(parents=True)
    _write(layout, [_layer(layout, root)], {"Env": [f"{name}={value}" for name, value in env.items()]})


def with_layer(base: Path, root: Path, layout: Path) -> None:
    """Write the image of the layout `base` with one more layer, `root`, into `layout`."""
    config, layers = read_image(base)
    shutil.copytree(base / "blobs", layout / "blobs", copy_function=os.link)
    _write(layout, [*layers, _layer(layout, root)], config["config"])


def _layer(layout: Path, root: Path) -> tuple[str, int]:
    blobs = layout / "blobs" / "sha256"
    written = blobs / "layer"
    with tarfile.open(written, "w") as tar:
        tar.add(root, arcname=".", filter=_as_root)
    with written.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    size = written.stat().st_size
    written.rename(blobs / digest)
    return f"sha256:{digest}", size


def _write(layout: Path, layers: Sequence[tuple[str, int]], settings: dict[str, Any]) -> None:
    blobs = layout / "blobs" / "sha256"
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [digest for digest, _ in layers]},
    }
    described = [{"mediaType": _LAYER, "digest": digest, "size": size} for digest, size in layers]
    body = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": _blob(blobs, config, _CONFIG), "layers": described}
    tag = {"annotations": {"org.opencontainers.image.ref.name": _TAG}}
    index = {"schemaVersion": 2, "manifests": [{**_blob(blobs, body, _MANIFEST), **tag}]}
    (layout / "index.json").write_text(json.dumps(index))
    (layout / "oci-layout").write_text(json.dumps({"imageLayoutVersion": "1.0.0"}))


def read_image(layout: Path) -> tuple[dict[str, Any], list[tuple[str, int]]]:
    """The config of the one image in a layout, and its layers' digests and sizes in bytes, compressed as stored."""
    index = json.loads((layout / "index.json").read_text())
    manifest = _read(layout, index["manifests"][0]["digest"])
    if "manifests" in manifest:  # BuildKit wraps it with an attestation
        manifest = _read(layout, manifest["manifests"][0]["digest"])
    layers = [(layer["digest"], layer["size"]) for layer in manifest["layers"]]
    return _read(layout, manifest["config"]["digest"]), layers


def unpack(layout: Path, root: Path, *, consume: bool = False) -> None:
    """Write the file system of the one image in a layout to `root`; what a layer deletes is deleted.

    consume: delete each layer from the layout once it is unpacked, so that an image of 10 GB takes that once.
    """
    root.mkdir(parents=True)
    layers = [digest for digest, _ in read_image(layout)[1]]
    for number, digest in enumerate(layers):
        with tarfile.open(_blob_path(layout, digest)) as tar:
            for member in tar:
                folder, name = os.path.split(member.name)
                if name.startswith(".wh."):
                    _delete(root / folder / name.removeprefix(".wh."))
                else:
                    tar.extract(member, root, filter="tar")
        if consume and digest not in layers[number + 1 :]:  # empty layers are all the same
            _blob_path(layout, digest).unlink()


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _read(layout: Path, digest: str) -> dict[str, Any]:
    return json.loads(_blob_path(layout, digest).read_text())


def _blob_path(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


def _blob(blobs: Path, content: dict[str, Any], media_type: str) -> dict[str, Any]:
    data = json.dumps(content).encode()
    digest = hashlib.sha256(data).hexdigest()
    (blobs / digest).write_bytes(data)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def _as_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
