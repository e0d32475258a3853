"""How the driver in the gate's pods frames what each run wrote, so that one log holds many. Standard library only.

@@rdma-gate {"event": "begin", "run": "mlx5_0:1", ...}
what ucx_perftest wrote
exit code 0
@@rdma-gate {"event": "end", "run": "mlx5_0:1", "exit_code": 0, "rdma_bytes": null}
@@rdma-gate {"event": "done"}
"""

import json
from dataclasses import dataclass

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
    """Run -> what the log says of it. One without its end is there too, without exit code; of a line that was cut off
    and is no JSON, nothing."""
    runs: dict[str, FramedRun] = {}
    name, lines = "", list[str]()
    for line in log.splitlines():
        if not line.startswith(_MARK):
            lines.append(line)
            continue
        try:
            said = json.loads(line.removeprefix(_MARK))
        except ValueError:
            continue
        if said["event"] == "begin":
            name, lines = said["run"], []
        elif said["event"] == "end" and said["run"] == name:
            runs[name] = FramedRun("\n".join(lines), said["exit_code"], said.get("rdma_bytes"))
            name = ""
    if name:
        runs[name] = FramedRun("\n".join(lines))
    return runs
