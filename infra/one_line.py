"""How the program ends when there is something that the user can put right."""

from typing import NoReturn

import pulumi

_MESSAGE_SHOWN = 32  # exit code that tells Pulumi's executor so (sdk/v3, pulumi-language-python-exec)


def end_with(line: str) -> NoReturn:
    """End the program with this line, also from within an `apply`.

    Not pulumi.RunError: that adds "an unhandled error occurred" behind the line that says it all.
    """
    pulumi.log.error(line)
    raise SystemExit(_MESSAGE_SHOWN) from None
