"""A Ray of our own for the time of a script; Ray's builders and metrics do not work without one."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import ray


@contextmanager
def own_ray(metrics_port: int | None = None) -> Iterator[None]:
    """Start it beside whatever Ray runs on this machine, and leave neither a process nor a file."""
    # Not under a test's own folder: Ray's sockets lie in it and their paths may have 107 characters.
    with tempfile.TemporaryDirectory(prefix="pdt-", ignore_cleanup_errors=True) as folder:
        ray.init(
            address="local",  # left out, Ray joins the latest cluster of this machine
            num_cpus=1,
            include_dashboard=False,
            log_to_driver=False,
            _metrics_export_port=metrics_port,
            _temp_dir=folder,
            _system_config={"metrics_report_interval_ms": 1000},
        )
        try:
            yield
        finally:
            ray.shutdown()
            _wait_for_end_of(folder)


def _wait_for_end_of(folder: str) -> None:
    """Wait until no process names the folder of this Ray: those that end last would write into it again."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and any(
        folder in argument for process in psutil.process_iter(["cmdline"]) for argument in process.info["cmdline"] or ()
    ):
        time.sleep(0.2)
