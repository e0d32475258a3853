"""Runs a command in a pod and reads its output, without taking a cut-off stream for a whole one.

The client's own WSClient keeps everything it receives in memory and glues it together piece by piece, which hundreds of
megabytes make slow; here frames are read as they are wanted. Frame format: the first byte is the channel
(k8s.io/apimachinery/pkg/util/remotecommand).
"""

import contextlib
import io
import json
from collections.abc import Sequence
from typing import Any

from kubernetes import client, stream
from kubernetes.client.exceptions import ApiException
from websocket import ABNF, WebSocketException

from benchmarks.errors import BenchmarkError
from infra.benchmark_job.kube_api import KubeApi

_STDOUT, _STDERR, _STATUS = 1, 2, 3
_SILENCE_S = 120.0  # a command that reads a large volume may be silent for a while


class Broken(BenchmarkError):
    """The output is not whole, or the command failed; another attempt may do."""


class PodOutput(io.RawIOBase):
    """Standard output of a command in a pod, as a file to read. Raises Broken while it is read."""

    def __init__(self, api: KubeApi, namespace: str, pod: str, container: str, command: Sequence[str]) -> None:
        self._what = f"`{command[0]}` in pod {pod}"
        self._data = b""
        self._stderr = b""
        self._ended = False
        try:
            connection: Any = stream.stream(
                # A client of its own: the websocket call changes the one that it is given.
                client.CoreV1Api(client.ApiClient(api.configuration)).connect_get_namespaced_pod_exec,
                pod,
                namespace,
                container=container,
                command=list(command),
                stdin=False,
                stdout=True,
                stderr=True,
                tty=False,
                _preload_content=False,
            )
        except (ApiException, WebSocketException, OSError) as error:
            raise Broken(f"{self._what} did not start: {' '.join(str(error).split())[:200]}") from None
        self._socket = connection.sock
        self._socket.settimeout(_SILENCE_S)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._data and not self._ended:
            self._receive()
        count = min(len(buffer), len(self._data))
        buffer[:count] = self._data[:count]
        self._data = self._data[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            with contextlib.suppress(WebSocketException, OSError):  # closed by the other side
                self._socket.close(timeout=1)
        super().close()

    def _receive(self) -> None:
        """Take one frame. The stream is whole when the command's status has come, and only then."""
        try:
            kind, frame = self._socket.recv_data_frame(True)
        except (WebSocketException, OSError) as error:
            raise Broken(f"{self._what} was cut off: {type(error).__name__}") from None
        if kind == ABNF.OPCODE_CLOSE:
            raise Broken(f"{self._what} was cut off before it ended")
        if kind not in (ABNF.OPCODE_BINARY, ABNF.OPCODE_TEXT) or not frame.data:
            return
        channel, data = frame.data[0], frame.data[1:]
        if channel == _STDOUT:
            self._data = data
        elif channel == _STDERR:
            self._stderr = (self._stderr + data)[-2000:]
        elif channel == _STATUS:
            self._finish(data)

    def _finish(self, data: bytes) -> None:
        self._ended = True
        status = json.loads(data)
        if status.get("status") != "Success":
            said = " ".join(self._stderr.decode("utf-8", errors="replace").split())[-300:]
            raise Broken(f"{self._what} failed: {said or status.get('message')}")


def run_in_pod(api: KubeApi, namespace: str, pod: str, container: str, command: Sequence[str]) -> bytes:
    """All output of a command in a pod. Raises Broken."""
    with PodOutput(api, namespace, pod, container, command) as output:
        return output.read() or b""
