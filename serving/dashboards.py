"""Grafana dashboards, kept as data in serving/dashboards/*.json; metrics.yaml there says where a metric was seen."""

from pathlib import Path

FOLDER = Path(__file__).with_name("dashboards")


def dashboards() -> dict[str, str]:
    """File name without its ending -> JSON for Grafana."""
    return {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.json"))}
