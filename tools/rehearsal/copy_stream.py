"""Bytes of one connection into another, for what stands between two programs."""

import asyncio
import contextlib

_BYTES = (
    65536  # at once; chosen because asyncio holds as many back before `drain` waits (StreamWriter's high-water mark)
)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until the one has ended or the other is gone."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_BYTES):
            writer.write(data)
            await writer.drain()
