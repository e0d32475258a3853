"""Arguments of a `vllm serve` command, by the names that vLLM's Python interface has for them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from itertools import takewhile

from serving.guards.located import Located

_SHORT = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "cc": "compilation_config",
    "O": "optimization_level",
}
_ENDS = ";&|"  # of a command in a shell
_END = re.compile(rf"[{_ENDS}]+|[0-9]?>.*")  # where it ends, or its output goes
_ENTRY = re.compile(r"vllm[./]entrypoints[./]openai[./]api_server")


def vllm_arguments(container: Located) -> dict[str, Located] | None:
    """What a container gives `vllm serve`: argument to value, at the entry of `command` or `args` that it stands in.

    None where the container does not start vLLM.
    """
    words = list(_words(container))
    start = _start(words, container)
    if start is None:
        return None
    found: dict[str, Located] = {}
    rest = list(takewhile(lambda word: not _END.fullmatch(word[0]), words[start:]))
    if rest and not rest[0][0].startswith("-"):
        text, at = rest.pop(0)
        found["model"] = Located(text, at.path, at.origin)
    while rest:
        word, at = rest.pop(0)
        if not word.startswith("-") or word == "--":
            continue
        if re.fullmatch(r"-O[0-9]", word):  # as vLLM's parser takes it
            word = f"-O={word[2:]}"
        name, has_value, value = word.lstrip("-").partition("=")
        if not has_value and rest and (not rest[0][0].startswith("-") or _is_number(rest[0][0])):
            has_value, value = "=", rest.pop(0)[0]
        _put(found, name, value if has_value else None, at)
    return found


def _put(found: dict[str, Located], name: str, value: str | None, at: Located) -> None:
    name, _, below = name.partition(".")
    name = _SHORT.get(name, name.replace("-", "_"))
    if value is None and name.startswith("no_"):
        found[name.removeprefix("no_")] = Located(False, at.path, at.origin)
        return
    parsed = True if value is None else _value(value)
    if below:  # --kv-transfer-config.kv_role kv_both
        before = found[name].value if name in found and isinstance(found[name].value, dict) else {}
        parsed = {**before, **_nested(below.split("."), parsed)}
    found[name] = Located(parsed, at.path, at.origin)


def _nested(keys: list[str], value: object) -> dict[str, object]:
    return {keys[0]: value if len(keys) == 1 else _nested(keys[1:], value)}


def _value(text: str) -> object:
    if text[:1] in "{[" and text:
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-\d+(\.\d+)?", text) is not None


def _words(container: Located) -> Iterator[tuple[str, Located]]:
    """Words of the command line with the entry that each is in; what a shell is told by `-c` taken apart."""
    shell = False
    for key in ("command", "args"):
        listed = container.at(key)
        entries = list(listed.entries()) if listed else []
        if listed is not None and isinstance(listed.value, str):
            entries = [listed]
        for entry in entries:
            text = str(entry.value)
            script = "\n" in text and text.lstrip()[:1] not in ("{", "[")  # JSON over several lines is one word
            if shell or script or re.search(r"vllm\s+serve", text):
                yield from ((word, entry) for word in _split(text))
            else:
                yield text, entry
            shell = shell or bool(re.fullmatch(r"-[eilux]*c", text))


def _split(text: str) -> list[str]:
    text = text.replace("\\\n", " ")  # a line that goes on
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_ENDS)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        return list(lexer)
    except ValueError:  # an open quote: the shell would refuse it too
        return text.split()


def _start(words: list[tuple[str, Located]], container: Located) -> int | None:
    for number, (word, _) in enumerate(words):
        if word == "serve" and number and words[number - 1][0].rsplit("/", 1)[-1] == "vllm":
            return number + 1
        if _ENTRY.search(word):
            return number + 1
    image = container.at("image")
    named = image.text if image is not None else None
    if named and re.search(r"\bvllm-openai", named) and not container.at("command"):
        return 0  # the image's entry point is `vllm serve`
    return None
