"""A log's lines as the program wrote them: without colours, CRLF and Kubernetes' prefixes, glued lines taken apart."""

import re

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")  # ECMA-48 control sequences
# `kubectl logs --prefix` and `--timestamps`.
_KUBERNETES = re.compile(r"^(?:\[pod/\S+\] ?)?(?:\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) )?")
# UCX starts each of its lines with `[seconds.microseconds] [host:pid:thread]` (ucs/debug/log.c).
_UCX_STAMP = r"\[\d+\.\d+\] \[[^\]]*:[^\]]*\]"
_GLUED = re.compile(rf"(?<=\S)[ \t]*(?={_UCX_STAMP})")
_UCX_LINE = re.compile(rf"{_UCX_STAMP}(?P<rest>.*)$")
_PROCESS = re.compile(r"\[(?P<process>[^\]]*:[^\]]*)\]")


def lines_of(text: str) -> list[str]:
    """The lines of a log, each as the program wrote it.

    stdout and stderr share a container's log, so a line of UCX can start behind another line's last character; it gets
    a line of its own. Indentation stays: it tells nothing, and a border is measured without it.
    """
    cleaned: list[str] = []
    for line in _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        cleaned += _GLUED.sub("\n", _KUBERNETES.sub("", line)).split("\n")
    return cleaned


def ucx_line(line: str) -> tuple[str, str] | None:
    """(process, what it said) of a line that UCX stamped, else None.

    `process` is host:pid:thread, by which the lines of several processes or threads in one log are told apart.
    """
    match = _UCX_LINE.search(line)
    if match is None:
        return None
    process = _PROCESS.search(line, match.start() + 1)
    return (process["process"] if process else "", match["rest"])
