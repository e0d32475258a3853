"""Serving until told to stop; and, for tests and studies, a server beside the program that asks it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from aiohttp import web

from benchmarks.target import Target
from tools.simulated_server.server import SimulatedServer
from tools.simulated_server.settings import Settings
from tools.simulated_server.target import describe

HOST = "127.0.0.1"
# How long an end waits for answers under way: nobody wants the rest of them.
_LAST_ANSWERS_S = 0.2


@dataclass
class Running:
    """A server that serves."""

    url: str
    target: Target
    server: SimulatedServer


async def serve(settings: Settings, port: int, started: Callable[[Running], None], stop: asyncio.Event) -> None:
    """Serve on loopback (port 0: a free one) until `stop` is set. Raises OSError when the port cannot be had."""
    server = SimulatedServer(settings)
    # A handler ends when its client goes, as vLLM aborts such a request.
    runner = web.AppRunner(server.app(), handler_cancellation=True, access_log=None, shutdown_timeout=_LAST_ANSWERS_S)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port, backlog=1024)
        await site.start()
        url = f"http://{HOST}:{runner.addresses[0][1]}"
        started(Running(url, describe(settings, url), server))
        await stop.wait()
    finally:
        await runner.cleanup()


@contextmanager
def simulated(settings: Settings) -> Iterator[Running]:
    """A server in a thread of this process, on a free port, until the block ends. It shares the process's one CPU at a
    time with whatever else runs in it: a study of latencies starts `python -m tools.simulated_server` instead.
    """
    ready = threading.Event()
    found: list[Running] = []
    ends: list[Callable[[], object]] = []
    failures: list[BaseException] = []

    async def body() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        ends.append(lambda: loop.call_soon_threadsafe(stop.set))

        def started(running: Running) -> None:
            found.append(running)
            ready.set()

        await serve(settings, 0, started, stop)

    def run() -> None:
        try:
            asyncio.run(body())
        except BaseException as error:
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    if failures:
        raise failures[0]
    try:
        yield found[0]
    finally:
        ends[0]()
        thread.join(timeout=10)
