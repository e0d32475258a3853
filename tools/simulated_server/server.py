"""The simulated server over HTTP: OpenAI's API, Ray's metrics, and what it knows itself about each request.

GET  /v1/models
POST /v1/completions, /v1/chat/completions      streaming or not; usage where stream_options.include_usage asks for it
GET  /metrics                                   counters of all replicas
GET  /nics                                      what a node-exporter would show
GET  /simulated/requests                        a JSON line for each streamed request: times by this server's clock
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import asdict, dataclass, replace
from typing import Literal

from aiohttp import web

from tools.simulated_server import exposition, openai
from tools.simulated_server.clock import AsyncioClock
from tools.simulated_server.deployment import Deployment, Falsified, Work
from tools.simulated_server.misbehaviour import Plan, Planner
from tools.simulated_server.openai import Ask, BadRequestError, Writer
from tools.simulated_server.prefix_cache import blocks_of
from tools.simulated_server.settings import Settings
from tools.simulated_server.stream import LostError, TokenStream

DIED = 70
"""Exit code of a server that was told to die."""
_LARGEST_BODY = 64 * 1024**2
_PROMETHEUS = "text/plain; version=0.0.4"


@dataclass
class Served:
    """A streamed request as the server saw it. Nanoseconds since the epoch, 0: did not happen.

    arrived: its headers were read; first, last: its first and last token were written to the socket. id: the client's
    X-Request-ID. late_first_s: how much later than planned by the model the first token was written.
    """

    id: str
    arrived_ns: int
    first_ns: int = 0
    last_ns: int = 0
    late_first_s: float = 0.0
    prompt_tokens: int = 0
    output_tokens: int = 0


class SimulatedServer:
    """One server. It lives in the event loop that runs when it is made."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.served: list[Served] = []
        self._loop = asyncio.get_running_loop()
        self._clock = AsyncioClock(self._loop, settings.time_scale)
        self._planner = Planner(settings.misbehaviour, settings.seed)
        wrong = settings.misbehaviour
        self.deployment = Deployment(
            settings.arrangement,
            settings.seed,
            self._clock,
            Falsified(wrong.warm_cache, wrong.cold_cache, self._pace if wrong.slowdown_per_s else None, wrong.terms),
        )
        self._answers = 0
        self._streamed = 0
        self._first_streamed = 0.0

    def app(self) -> web.Application:
        """The web application."""
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.add_routes(
            [
                web.get("/v1/models", self._models),
                web.post("/v1/completions", self._completions),
                web.post("/v1/chat/completions", self._chat),
                web.get("/metrics", self._metrics),
                web.get("/nics", self._nics),
                web.get("/simulated/requests", self._requests),
            ]
        )
        return app

    async def _models(self, _: web.Request) -> web.Response:
        model = {"id": self.settings.model, "object": "model", "owned_by": "simulated"}
        return web.json_response({"object": "list", "data": [model]})

    async def _metrics(self, _: web.Request) -> web.Response:
        text = exposition.metrics(self.settings, self.deployment.replicas, self._clock.lateness)
        return web.Response(text=text, headers={"Content-Type": _PROMETHEUS})

    async def _nics(self, _: web.Request) -> web.Response:
        text = exposition.nics(self.settings, self.deployment.replicas)
        return web.Response(text=text, headers={"Content-Type": _PROMETHEUS})

    async def _requests(self, _: web.Request) -> web.Response:
        return web.Response(text="".join(json.dumps(asdict(one)) + "\n" for one in self.served))

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, "completion")

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, "chat")

    async def _answer(self, request: web.Request, kind: Literal["completion", "chat"]) -> web.StreamResponse:
        served = Served(request.headers.get("X-Request-ID", ""), time.time_ns())
        try:
            ask = openai.read(await request.read(), kind, self.settings.model)
        except BadRequestError as error:
            return web.json_response(openai.error(str(error), error.status), status=error.status)
        self._answers += 1
        writer = Writer(ask, self._answers, self.settings.model)
        if not ask.stream:
            return await self._whole(ask, writer)
        self._streamed += 1
        self.served.append(served)
        self._disasters()
        plan = self._planner.plan(ask.tokens)
        if plan.refused:
            return web.json_response(openai.error("simulated: the engine is dead", 500), status=500)
        if plan.cut:
            ask = replace(ask, prompt=ask.prompt[len(ask.prompt) // 2 :])
        return await self._stream(request, ask, plan, writer, served)

    async def _whole(self, ask: Ask, writer: Writer) -> web.Response:
        tokens = TokenStream(self._loop)
        number, _ = self.deployment.submit(self._work(ask, Plan(ask.tokens), writer), tokens)
        try:
            ended = False
            while not ended:
                _, ended = await tokens.fetch()
        except LostError as lost:
            return web.json_response(openai.error(f"simulated: {lost}", 500), status=500)
        finally:
            self.deployment.abort(number)
        return web.json_response(writer.whole(openai.usage(self._prompt_tokens(ask), ask.tokens)))

    async def _stream(
        self, request: web.Request, ask: Ask, plan: Plan, writer: Writer, served: Served
    ) -> web.StreamResponse:
        headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        served.prompt_tokens = self._prompt_tokens(ask)
        tokens = TokenStream(self._loop)
        work = self._work(ask, plan, writer)
        number, _ = self.deployment.submit(work, tokens)
        if plan.foreign:
            self.deployment.submit(Work(work.prompt, work.answer, kv=work.kv))
        half = max(1, plan.tokens // 2) if plan.broken or plan.stalled else None
        try:
            await self._write(response, writer, tokens, plan.tokens if half is None else half, plan.tokens, served)
            if plan.broken:
                await response.write(openai.error_event("simulated: the engine died"))
            elif plan.stalled:
                await asyncio.Event().wait()  # until the client gives up, or the server ends
            else:
                counts = openai.usage(served.prompt_tokens, plan.tokens) if ask.usage and plan.usage else None
                await response.write(writer.end(counts))
        except LostError as lost:
            await response.write(openai.error_event(f"simulated: {lost}"))
        finally:
            self.deployment.abort(number)
        return response

    async def _write(
        self, response: web.StreamResponse, writer: Writer, tokens: TokenStream, wanted: int, whole: int, served: Served
    ) -> None:
        """Write `wanted` tokens of an answer of `whole` as they come; of none, wait for the answer's end."""
        written = 0
        ended = False
        while not ended and (written < wanted or not wanted):
            ready, ended = await tokens.fetch()
            ready = min(ready, wanted - written)
            if not ready:
                continue
            await response.write(writer.chunks(written, ready, ended=written + ready == whole))
            written += ready
            served.output_tokens = written
            served.last_ns = time.time_ns()
            if not served.first_ns:
                served.first_ns = served.last_ns
                late = self._clock.now() - (tokens.first or 0.0)
                served.late_first_s = round(late / self.settings.time_scale, 6)

    def _work(self, ask: Ask, plan: Plan, writer: Writer) -> Work:
        block = self.settings.arrangement.block_size * self.settings.bytes_per_token
        blocks = later = ()
        if self.settings.arrangement.cache_tokens:
            later = blocks_of(ask.prompt + writer.text.encode(), block)
            blocks = later[: len(ask.prompt) // block]
        return Work(self._prompt_tokens(ask), max(1, plan.tokens), blocks, later, plan.kv)

    def _prompt_tokens(self, ask: Ask) -> int:
        return -(-len(ask.prompt) // self.settings.bytes_per_token)

    def _pace(self, now: float) -> float:
        if not self._streamed:
            return 1.0
        return 1.0 + self.settings.misbehaviour.slowdown_per_s * (now - self._first_streamed)

    def _disasters(self) -> None:
        """What happens to the whole service when this streamed request comes."""
        wrong = self.settings.misbehaviour
        if self._streamed == 1:
            self._first_streamed = self._clock.now()
        if self._streamed == wrong.die_at_request:
            print(f"simulated: dying at request {self._streamed}, as told", file=sys.stderr, flush=True)
            os._exit(DIED)
        if self._streamed == wrong.restart_at_request:
            self.deployment.restart(len(self.deployment.replicas) - 1)
