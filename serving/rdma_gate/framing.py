"""How the driver in the gate's pods frames what each run wrote, so that one log holds many. Standard library only.

@@rdma-gate {"event": "begin", "run": "mlx5_0:1", ...}
what ucx_perftest wrote
exit code 0
@@rdma-gate {"event": "end", "run": "mlx5_0:1", "exit_code": 0, "rdma_bytes": null}
@@rdma-gate {"event": "done"}
"""

import json
from dataclasses import dataclass
from typing import Any

_MARK = "@@rdma-gate "


@dataclass(frozen=True)
class FramedRun:
    """log: with its line `exit code N`. exit_code: None when it was killed at its limit, or has not ended.

    rdma_bytes: device -> by how much its receive counter grew, bytes; None where it was not counted.
    """

    log: str
    exit_code: int | None = None
    rdma_bytes: dict[str, int] | None = None


def mark(event: str, **values: object) -> str:
    """One line of the frame."""
    return _MARK + json.dumps({"event": event, **values})


def quoted(output: str) -> str:
    """A program's output with its last line ended, in which no line passes for one of the frame."""
    lines = [f" {line}" if line.startswith(_MARK) else line for line in output.splitlines()]
    return "".join(f"{line}\n" for line in lines)


def framed_runs(log: str) -> dict[str, FramedRun]:
    """Run -> what the log says of it. One without its end is there too, without exit code; of a line of the frame that
    was cut off or damaged, nothing."""
    runs: dict[str, FramedRun] = {}
    name, lines = "", list[str]()
    for line in log.splitlines():
        if not line.startswith(_MARK):
            lines.append(line)
            continue
        said = _said(line.removeprefix(_MARK))
        run = said.get("run")
        if said.get("event") == "begin" and isinstance(run, str):
            name, lines = run, []
        elif said.get("event") == "end" and name and run == name:
            runs[name] = FramedRun("\n".join(lines), _number(said.get("exit_code")), _bytes(said.get("rdma_bytes")))
            name = ""
    if name:
        runs[name] = FramedRun("\n".join(lines))
    return runs


def _said(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _bytes(value: object) -> dict[str, int] | None:
    """None where it was not counted, and for anything else than a whole number for each device."""
    if not isinstance(value, dict) or any(_number(count) is None for count in value.values()):
        return None
    return value
