"""How the program ends when there is something that the user can put right."""

import asyncio
from typing import NoReturn

import pulumi

_MESSAGE_SHOWN = 32  # exit code that tells Pulumi's executor so (sdk/v3, pulumi-language-python-exec)
# Of the engine, to whoever is still registering after it has shown why a resource failed (pkg/v3, resource/deploy).
_TOLD = "resource monitor shut down"
_watching: set[asyncio.Task[None]] = set()  # asyncio itself does not hold them


def end_with(line: str) -> NoReturn:
    """End the program with this line, also from within an `apply`.

    Not pulumi.RunError: that adds "an unhandled error occurred" behind the line that says it all.
    """
    end_with_all([line])


def end_with_all(lines: list[str]) -> NoReturn:
    """The same with several things to put right."""
    for line in lines:
        pulumi.log.error(line)
    raise SystemExit(_MESSAGE_SHOWN) from None


def end_when_told(component: pulumi.Resource) -> None:
    """End the program without more words when a remote component fails and the engine has shown the reason.

    Python's SDK would add two tracebacks, of a shut monitor. Any other failure stays as it is.
    """
    task = asyncio.ensure_future(_watch(component))
    _watching.add(task)
    task.add_done_callback(_watching.discard)


async def _watch(component: pulumi.Resource) -> None:
    try:
        await component.urn.future()
    except Exception as error:
        if _TOLD in str(error):
            raise SystemExit(_MESSAGE_SHOWN) from None
