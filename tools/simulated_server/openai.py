"""The OpenAI API's shapes, as vLLM 0.18 writes them: /v1/completions and /v1/chat/completions."""

from __future__ import annotations

import json
import time
import zlib
from dataclasses import dataclass
from typing import Any, Literal

_LETTERS = "the quick brown fox jumps over a lazy dog and runs on "
_DEFAULT_TOKENS = 16  # vLLM's max_tokens of a completion that names none


class BadRequestError(Exception):
    """A request that a real server refuses too; `status` is HTTP's."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Ask:
    """What a client asks for. prompt: the bytes whose tokens count; tokens: of the answer."""

    kind: Literal["completion", "chat"]
    prompt: bytes
    tokens: int
    stream: bool
    usage: bool


def read(body: bytes, kind: Literal["completion", "chat"], model: str) -> Ask:
    """The request of a body. Raises BadRequestError."""
    try:
        asked = json.loads(body)
        prompt = _chat_prompt(asked["messages"]) if kind == "chat" else _completion_prompt(asked["prompt"])
        tokens = int(asked.get("max_completion_tokens") or asked.get("max_tokens") or _DEFAULT_TOKENS)
        stream, options = bool(asked.get("stream")), asked.get("stream_options") or {}
        named = asked.get("model", model)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRequestError(f"not a request for a {kind}: {type(error).__name__}: {error}") from None
    if named != model:
        raise BadRequestError(f"The model `{named}` does not exist.", 404)
    if not prompt or tokens < 1:
        raise BadRequestError("an empty prompt, or fewer than 1 token asked for")
    return Ask(kind, prompt, tokens, stream, bool(options.get("include_usage")))


def _completion_prompt(prompt: str | list[int]) -> bytes:
    if isinstance(prompt, str):
        return prompt.encode()
    return bytes(int(token) % 256 for token in prompt)  # token ids: a byte each


def _chat_prompt(messages: list[dict[str, Any]]) -> bytes:
    """Messages after each other, each closed, so that the next turn begins like this one and its answer."""
    text = "".join(f"<{message['role']}>{_text(message['content'])}\n" for message in messages)
    return (text + "<assistant>").encode()


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(str(part.get("text", "")) for part in content)


class Writer:
    """Writes one answer: each token is one character, and the same prompt gets the same ones."""

    def __init__(self, ask: Ask, number: int, model: str) -> None:
        chat = ask.kind == "chat"
        offset = zlib.crc32(ask.prompt) % len(_LETTERS)
        self.text = (_LETTERS * (2 + ask.tokens // len(_LETTERS)))[offset : offset + ask.tokens]
        self._chat = chat
        self._head: dict[str, Any] = {
            "id": f"{'chatcmpl' if chat else 'cmpl'}-simulated-{number}",
            "object": "chat.completion" if chat else "text_completion",
            "created": int(time.time()),
            "model": model,
        }
        self._chunk_head = {**self._head, "object": "chat.completion.chunk" if chat else "text_completion"}
        self._around = {reason: self._chunk(reason) for reason in (None, "length")}

    def chunks(self, start: int, count: int, *, ended: bool) -> bytes:
        """Events of `count` tokens from `start` on, one each; with `ended` the last one says why the answer ends."""
        events: list[bytes] = []
        for index in range(start, start + count):
            before, after = self._around["length" if ended and index == start + count - 1 else None]
            events += [before, self.text[index].encode(), after]
        return b"".join(events)

    def end(self, counts: dict[str, int] | None) -> bytes:
        """The last events: token counts if wanted, [DONE]."""
        event = _event({**self._chunk_head, "choices": [], "usage": counts}) if counts else b""
        return event + b"data: [DONE]\n\n"

    def whole(self, counts: dict[str, int] | None) -> dict[str, Any]:
        """The answer in one piece."""
        part = {"message": {"role": "assistant", "content": self.text}} if self._chat else {"text": self.text}
        choice = {"index": 0, **part, "logprobs": None, "finish_reason": "length"}
        return {**self._head, "choices": [choice], **({"usage": counts} if counts else {})}

    def _chunk(self, reason: str | None) -> tuple[bytes, bytes]:
        """The event of a token, before and after its text: thousands are written, and only that differs."""
        part = {"delta": {"content": "@@"}} if self._chat else {"text": "@@"}
        choice = {"index": 0, **part, "logprobs": None, "finish_reason": reason}
        before, _, after = _event({**self._chunk_head, "choices": [choice]}).partition(b"@@")
        return before, after


def usage(prompt: int, completion: int) -> dict[str, int]:
    """Token counts."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def error_event(message: str) -> bytes:
    """An error inside a stream that has begun with 200, as vLLM writes it."""
    return _event({"error": {"message": message, "type": "InternalServerError", "code": 500}}) + b"data: [DONE]\n\n"


def error(message: str, status: int) -> dict[str, Any]:
    """The body of a refusal."""
    return {"error": {"message": message, "type": "BadRequestError" if status < 500 else "InternalServerError"}}


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"
