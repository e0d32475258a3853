"""What tests of more than one folder need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def aiperf() -> str:
    """The real AIPerf."""
    found = os.environ.get("PD_MI325X_AIPERF", "")
    if not Path(found).is_file():
        pytest.fail("no AIPerf at PD_MI325X_AIPERF: run `make toolchain`", pytrace=False)
    return found
