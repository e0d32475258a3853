"""A stand-in for a served model: an OpenAI-compatible streaming server with a Prometheus endpoint.

It runs in the test's own process, on loopback, and answers with made-up text. It measures nothing
about any real engine: it exists so that tests can show the benchmark what a good service and a
misbehaving one look like.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "stand-in-model"


@dataclass
class Behaviour:
    """How the stand-in answers. Delays in seconds; `every` counts requests (0: never).

    tokens_per_event: tokens of one event of the stream.
    kv_factor scales the KV bytes reported per request (1.0 is honest, 0.0 moves nothing);
    decode_computes is the part of each prompt that decode reports as computed by itself.
    prefill_block_size: that of the blocks that move, if not block_size. transports: UCX_TLS of the decode engine.
    waking_s are the times that the first requests in one piece (not streamed) take; refuse fails them all.
    """

    block_size: int = 16
    bytes_per_token: int = 1024
    first_token_s: float = 0.005
    token_s: float = 0.0005
    short_every: int = 0
    error_every: int = 0
    empty_every: int = 0
    tokens_per_event: int = 1
    export_kv: bool = True
    kv_factor: float = 1.0
    decode_computes: float = 0.0
    prefill_block_size: int | None = None
    transports: str = "tcp,self"
    failed_transfers: int = 0
    failed_notifications: int = 0
    expired: int = 0
    foreign_requests: int = 0
    publish_delay_s: float = 0.0
    waking_s: tuple[float, ...] = ()
    refuse: bool = False


@dataclass
class _Counters:
    requests: int = 0
    transfers: int = 0
    kv_bytes: float = 0.0
    blocks: int = 0
    prompt_tokens: int = 0
    published_at: float = field(default_factory=time.monotonic)


class StandIn(ThreadingHTTPServer):
    """The server. `prompts` keeps every prompt received, in order of arrival."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behaviour = behaviour
        self.prompts: list[str] = []  # of streamed requests, which are the measured ones
        self.bodies: list[dict[str, object]] = []
        self._lock = threading.Lock()
        self._live = _Counters()
        self._shown = _Counters()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def take_waking_delay(self) -> float:
        """How much longer the next unmeasured request takes, in seconds."""
        with self._lock:
            first, rest = self.behaviour.waking_s[:1], self.behaviour.waking_s[1:]
            self.behaviour.waking_s = rest
            return first[0] if first else 0.02

    def register(self, body: dict[str, object]) -> int:
        """Note one request; return its number, counted from 1."""
        with self._lock:
            self.prompts.append(str(body["prompt"]))
            self.bodies.append(body)
            self._live.requests += 1
            return self._live.requests

    def answered(self, prompt_tokens: int) -> None:
        """Count the KV transfer of one answered request."""
        behaviour = self.behaviour
        size = behaviour.prefill_block_size or behaviour.block_size
        blocks = -(-prompt_tokens // size)
        moved = blocks * size * behaviour.bytes_per_token * behaviour.kv_factor
        copies = 1 + (behaviour.foreign_requests if self._live.transfers == 0 else 0)
        with self._lock:
            self._live.kv_bytes += moved * copies
            self._live.blocks += blocks * copies
            self._live.transfers += copies
            self._live.prompt_tokens += prompt_tokens * copies

    def exposition(self) -> str:
        """Prometheus text, refreshed at most every `publish_delay_s`, as Ray's exporter does."""
        now = time.monotonic()
        with self._lock:
            if now - self._shown.published_at >= self.behaviour.publish_delay_s:
                live = self._live
                self._shown = replace(live, published_at=now)
            shown = self._shown
        return _exposition(shown, self.behaviour)


def _exposition(shown: _Counters, behaviour: Behaviour) -> str:
    """Two engines as Ray shows them: prefill computes every prompt, decode receives what it does not compute."""
    computed = int(shown.prompt_tokens * behaviour.decode_computes)
    some = 1 if shown.transfers else 0
    samples: list[tuple[str, str, float]] = [
        ("ray_vllm_prompt_tokens_total", "prefill", shown.prompt_tokens),
        ("ray_vllm_prompt_tokens_total", "decode", shown.prompt_tokens),
        ("ray_vllm_prompt_tokens_cached_total", "decode", shown.prompt_tokens - computed),
        ("ray_vllm_external_prefix_cache_hits_total", "decode", shown.prompt_tokens - computed),
        ("ray_vllm_request_success_total", "decode", shown.transfers),
        ("ray_vllm_nixl_num_failed_transfers_total", "decode", some * behaviour.failed_transfers),
        ("ray_vllm_nixl_num_failed_notifications_total", "decode", some * behaviour.failed_notifications),
        ("ray_vllm_nixl_num_kv_expired_reqs_total", "prefill", some * behaviour.expired),
    ]
    # Ray shows a counter only after its first increment.
    lines = [line for name, role, value in samples if value for line in _sample(name, _engine(role), value)]
    if behaviour.export_kv and shown.transfers:
        # As serving/replica/kv_counters.py names them; K and V of two layers, 1 and 2 ms a transfer.
        replica = f'deployment="Decode:{MODEL}",replica="decode-0",transports="{behaviour.transports}"'
        for name, value in (
            ("bytes_transferred", shown.kv_bytes),
            ("transfers", shown.transfers),
            ("descriptors", 4 * shown.blocks),
            ("post_seconds", 0.001 * shown.transfers),
            ("transfer_seconds", 0.002 * shown.transfers),
        ):
            lines += _sample(f"ray_pd_kv_{name}_total", replica, value)
    return "\n".join(["# HELP up always there", "# TYPE up gauge", "up 1", *lines]) + "\n"


def _engine(role: str) -> str:
    return f'ReplicaId="{role}-0",model_name="{MODEL}"'


def _sample(name: str, labels: str, value: float) -> tuple[str, str]:
    return f"# TYPE {name} counter", f'{name}{{NodeAddress="10.0.0.1",{labels}}} {value}'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the test's output is the report."""

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self._reply(json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}), "application/json")
        elif self.path == "/metrics":
            self._reply(self.server.exposition(), "text/plain; version=0.0.4")
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not body.get("stream"):
            self._complete(body)
            return
        number = self.server.register(body)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self._stream(body, number)
        self.close_connection = True

    def _complete(self, body: dict[str, object]) -> None:
        """An answer in one piece. The first requests of a cold service are slow."""
        waking = self.server.take_waking_delay()
        time.sleep(waking)
        if self.server.behaviour.refuse:
            self._reply('{"error": {"message": "the engine\\nis dead"}}', "application/json", 500)
            return
        self.server.answered(len(str(body["prompt"]).encode()))
        self._reply(json.dumps({"object": "text_completion", "choices": [{"text": " x"}]}), "application/json")

    def _stream(self, body: dict[str, object], number: int) -> None:
        behaviour = self.server.behaviour
        prompt_tokens = len(str(body["prompt"]).encode())
        asked = int(str(body.get("max_tokens") or body.get("max_completion_tokens") or 16))
        tokens = asked
        if _hits(number, behaviour.short_every):
            tokens = asked // 2
        if _hits(number, behaviour.empty_every):
            tokens = 0
        time.sleep(behaviour.first_token_s)
        for index in range(0, tokens, behaviour.tokens_per_event):
            if index >= tokens // 2 and _hits(number, behaviour.error_every):
                self._event({"error": {"message": "stand-in: the engine died", "code": 500}})
                return
            text = " x" * min(behaviour.tokens_per_event, tokens - index)
            self._event({"id": str(number), "object": "text_completion", "choices": [{"index": 0, "text": text}]})
            time.sleep(behaviour.token_s * behaviour.tokens_per_event)
        usage = {"prompt_tokens": prompt_tokens, "completion_tokens": tokens, "total_tokens": prompt_tokens + tokens}
        self.server.answered(prompt_tokens)
        self._event({"id": str(number), "object": "text_completion", "choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, data: dict[str, object]) -> None:
        self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
        self.wfile.flush()

    def _reply(self, text: str, kind: str, status: int = 200) -> None:
        payload = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def _hits(number: int, every: int) -> bool:
    return every > 0 and number % every == 0


@contextmanager
def standing_in(behaviour: Behaviour | None = None) -> Iterator[StandIn]:
    """Run a stand-in on a free loopback port until the block ends."""
    server = StandIn(behaviour or Behaviour())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
