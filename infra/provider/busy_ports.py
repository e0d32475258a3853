"""Ports of a local Ray head that somebody listens on already."""

import socket
from collections.abc import Iterable

from infra.provider.processes import supervisors


def busy_ports(ports: dict[str, int]) -> str:
    """Which of these ports are in use and what to do about it, or nothing."""
    busy = {port: name for name, port in sorted(ports.items(), key=lambda item: item[1]) if _in_use(port)}
    if not busy:
        return ""
    named = ", ".join(f"{port} ({name})" for port, name in busy.items())
    # Only a head that was started with one of these: another one is another stack's, or another checkout's.
    holders = [pid for pid, words in sorted(supervisors().items()) if _holds(words, busy)]
    heads = "".join(f"; a local Ray head of these ports is process {pid} (end it with kill {pid})" for pid in holders)
    return f"ports in use: {named}{heads}; free them or set cluster.portBase in the stack file"


def _holds(words: list[str], ports: Iterable[int]) -> bool:
    """Whether a head with this command line was given one of the ports (_command in local_ray_cluster.py)."""
    return any(word.startswith("--") and word.endswith(f"={port}") for word in words for port in ports)


def _in_use(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
