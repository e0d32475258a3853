"""A door from this machine's network into the namespace: what reaches the inherited socket goes on to an address in it.

python -m tools.rehearsal.forwarder DESCRIPTOR HOST PORT       (in the namespace)

A listening socket stays in the network it was made in, whoever accepts on it. So the owner makes it on 127.0.0.1
outside, this process accepts on it and connects inside, and nothing needs a virtual cable or root. It answers on the
same address inside too, so that one kubeconfig is good on both sides.
"""

import asyncio
import contextlib
import socket
import sys

from tools.rehearsal.copy_stream import copy


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await copy(reader, writer)
    with contextlib.suppress(OSError):
        writer.close()


async def main(descriptor: int, host: str, port: int) -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inside, to_inside = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, to_inside), _copy(inside, writer))

    outside = socket.socket(fileno=descriptor)
    servers = [
        await asyncio.start_server(forward, sock=outside),
        await asyncio.start_server(forward, *outside.getsockname()),
    ]
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
