"""What the image says is in it, as a metric: `ray_pd_stack_info_total{component="ucx_commit",version="da3fac2"} 1`.

The image's build checks its content and writes it down (serving/image_check). Without an image there is no such file,
and no such metric. A counter, as Ray's exporter forgets a gauge once it was scraped, until it is set again
(open_telemetry_metric_recorder.py, Ray 2.55).
"""

import json
from pathlib import Path

from ray.util.metrics import Counter

STACK_FILE = Path("/etc/pd-stack.json")
_exported: list[Counter] = []


def install() -> None:
    """Export it from this process. Safe to call twice."""
    if _exported or not STACK_FILE.exists():
        return
    found: dict[str, str] = json.loads(STACK_FILE.read_text())["found"]
    info = Counter("pd_stack_info", description="what is in the image", tag_keys=("component", "version"))
    for component, version in found.items():
        info.inc(1, tags={"component": component, "version": version})
    _exported.append(info)
