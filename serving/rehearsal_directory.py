"""Where this machine keeps the rehearsal model."""

import hashlib
import os
from pathlib import Path


def rehearsal_model_directory() -> Path:
    """The model's directory in the cache, named by the content it is made from."""
    cache = Path(os.environ.get("PD_MI325X_CACHE") or Path.home() / ".cache" / "pd-mi325x").expanduser().absolute()
    root = Path(__file__).resolve().parent
    content = b"".join((root / name).read_bytes() for name in ("rehearsal_model.py", "models.py"))
    content += (root.parent / "LICENSE").read_bytes()
    return cache / "models" / f"rehearsal-{hashlib.sha256(content).hexdigest()[:12]}"
