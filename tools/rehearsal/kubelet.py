"""A stand-in for what a kubelet does besides running containers: pod directories, logs, and the way to exec.

python -m tools.rehearsal.kubelet POD_ROOT KUBECONFIG CERTIFICATE KEY       (in the namespace)

It answers on the kubelet port of every simulated node. Logs are plain text files, streamed until the pod has ended,
which kwok's own log server cannot do. Any other request goes on to kwok; of an exec the command is put behind
pod_exec.sh, so that it sees its pod's files. Exit codes of exec are kwok's: a failed command is an error without one.
"""

import asyncio
import contextlib
import ssl
import sys
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from kubernetes import client, config

from tools.rehearsal.control_plane import KUBELET_PORT, KWOK_SERVER
from tools.rehearsal.copy_stream import copy
from tools.rehearsal.pod_keeper import PodKeeper
from tools.rehearsal.pods import Pods

_EXEC = Path(__file__).with_name("pod_exec.sh")
_POLL_S = 0.1


class Kubelet:
    """Serves the connections that the API server makes."""

    def __init__(self, pods: Pods, keeper: PodKeeper) -> None:
        self._pods = pods
        self._keeper = keeper

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: a log, or a tunnel to kwok."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await reader.readuntil(b"\r\n\r\n")
            line, _, rest = head.partition(b"\r\n")
            method, target, version = line.decode().split(" ")
            url = urlsplit(target)
            words = url.path.strip("/").split("/")
            if words[0] == "containerLogs" and len(words) == 4:
                await self._log(writer, words[1], words[2], parse_qs(url.query))
            else:
                if words[0] == "exec":
                    target = self._exec_target(words, url.query)
                await _tunnel(reader, writer, f"{method} {target} {version}\r\n".encode() + rest)
        with contextlib.suppress(OSError):
            writer.close()
            await writer.wait_closed()

    async def _log(self, writer: asyncio.StreamWriter, namespace: str, pod: str, query: dict[str, list[str]]) -> None:
        """The log from its beginning or its last `tailLines`; with `follow` until the pod has ended."""
        path = self._pods.directory(namespace, pod).log
        if not path.exists():
            writer.write(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\nno log of this pod\n")
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")
        follow = query.get("follow", [""])[0].lower() in ("true", "1")
        with path.open("rb") as file:
            tail = query.get("tailLines")
            if tail:
                lines = file.read().splitlines(keepends=True)
                writer.write(b"".join(lines[len(lines) - min(int(tail[0]), len(lines)) :]))
            while True:
                ended = self._keeper.ended(namespace, pod)  # before reading: what was written until then is read
                writer.write(file.read())
                await writer.drain()
                if ended or not follow:
                    return
                await asyncio.sleep(_POLL_S)

    def _exec_target(self, words: list[str], query: str) -> str:
        """/exec/NAMESPACE/POD/CONTAINER (or with a uid in it) with pod_exec.sh in front of the command."""
        files = self._pods.directory(words[1], words[2]).files
        front = [("command", word) for word in ("sh", str(_EXEC), str(files))]
        return f"/{'/'.join(words)}?{urlencode([*front, *parse_qsl(query, keep_blank_values=True)])}"


async def _tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
    host, port = KWOK_SERVER.split(":")
    behind, to_kwok = await asyncio.open_connection(host, int(port))
    to_kwok.write(head)
    await asyncio.wait(
        [asyncio.create_task(copy(reader, to_kwok)), asyncio.create_task(copy(behind, writer))],
        return_when=asyncio.FIRST_COMPLETED,
    )
    to_kwok.close()


async def main(pod_root: Path, kubeconfig: Path, certificate: Path, key: Path) -> None:
    pods = Pods(pod_root)
    keeper = PodKeeper(pods, client.CoreV1Api(config.new_client_from_config(str(kubeconfig))))
    keeper.start()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    kubelet = Kubelet(pods, keeper)
    server = await asyncio.start_server(kubelet.serve, "0.0.0.0", KUBELET_PORT, ssl=context)  # noqa: S104 - the namespace
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*(Path(word) for word in sys.argv[1:5])))
