"""The schemas that guards hold configs against are those of the pinned Ray and vLLM."""

import os
from pathlib import Path

from serving.guards.program_schemas import SCHEMAS
from tests.runtime.test_serve_config import run_in_runtime

UPDATE = "PD_MI325X_UPDATE_DOCS"


def test_the_committed_schemas_are_the_programs_own(tmp_path: Path) -> None:
    run_in_runtime("program_schemas.py", tmp_path / "schemas.json")
    now = (tmp_path / "schemas.json").read_text(encoding="utf-8")
    if os.environ.get(UPDATE):
        SCHEMAS.write_text(now, encoding="utf-8")
    assert SCHEMAS.read_text(encoding="utf-8") == now, f"{UPDATE}=1 writes it anew"
