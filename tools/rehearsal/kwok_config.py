"""kwok's configuration: its own stages for nodes and pods, changed where a rehearsal needs control, and exec."""

from pathlib import Path
from typing import Any

import yaml

from tools.rehearsal.binaries import kwok_stages
from tools.rehearsal.pods import PREPARED

_OWN_STAGES = Path(__file__).parent / "pod_stages.yaml"


def kwok_config(work_directory: Path) -> str:
    """YAML of several documents. `work_directory` is where the command of an exec starts (see pod_exec.sh)."""
    stages = [_changed(stage) for stage in yaml.safe_load_all(kwok_stages().read_text()) if _wanted(stage)]
    own = [stage for stage in yaml.safe_load_all(_OWN_STAGES.read_text()) if stage]
    local_exec = {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "ClusterExec",
        "metadata": {"name": "all-pods"},
        "spec": {"execs": [{"local": {"workDir": str(work_directory)}}]},
    }
    return yaml.safe_dump_all([*stages, *own, local_exec])


def _wanted(stage: Any) -> bool:
    return bool(stage) and stage["kind"] == "Stage" and stage["metadata"]["name"] != "pod-complete"


def _changed(stage: dict[str, Any]) -> dict[str, Any]:
    """A pod becomes ready once kubelet.py has prepared its directory, so that its log is there before it runs."""
    if stage["metadata"]["name"] == "pod-ready":
        stage["spec"]["selector"].setdefault("matchAnnotations", {})[PREPARED] = "true"
    return stage
