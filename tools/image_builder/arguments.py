"""`python -m tools.image_builder.arguments`: what docker-bake.hcl does not say itself, all of it from versions.toml.

print: a second bake file with every build argument. digests: ask the registries for those of the base images.
"""

import json
import re
import sys
from collections.abc import Callable
from typing import Annotated, Any

import requests
import typer

from serving.image_arguments import build_arguments
from serving.versions import VERSIONS_FILE, versions
from tools.toolchain.errors import ToolchainError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
ITEM = "images"
_MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_REGISTRIES = {"docker.io": "https://registry-1.docker.io"}
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_TIMEOUT_S = 30


def bake_file() -> dict[str, Any]:
    """The second bake file: a target NAME-arguments for each image, which the image's own target inherits."""
    return {"target": {f"{name}-arguments": {"args": args} for name, args in build_arguments().items()}}


@app.command("print")
def print_arguments() -> None:
    """Print the second bake file, JSON."""
    typer.echo(json.dumps(bake_file(), indent=2))


@app.command()
def digests(
    write: Annotated[bool, typer.Option(help="Write them into versions.toml.")] = False,
) -> None:
    """Ask each base image's registry for its digest; print what is new."""
    text = VERSIONS_FILE.read_text(encoding="utf-8")
    for name, image in versions()["image"].items():
        if "reference" in image:
            found = digest(image["reference"])
            typer.echo(f"{image['reference']} {found}{'' if found != image['digest'] else ' (as pinned)'}")
            text = with_digest(text, name, found)
    if write:
        VERSIONS_FILE.write_text(text, encoding="utf-8")


def with_digest(text: str, name: str, found: str) -> str:
    """versions.toml with `found` as the digest of [image.NAME]; everything else as it was, comments too."""
    section = re.compile(rf"(\[image\.{re.escape(name)}\]\n(?:[^\[\n].*\n)*?digest = )\"[^\"]*\"")
    replaced, count = section.subn(rf'\g<1>"{found}"', text)
    if count != 1:
        raise ToolchainError(ITEM, f"versions.toml has no digest line in [image.{name}]", 'add `digest = ""`')
    return replaced


def digest(image: str, get: Callable[..., requests.Response] = requests.get) -> str:
    """The digest of `HOST/REPOSITORY:TAG` now, as its registry says. Raises ToolchainError."""
    host, _, rest = image.partition("/")
    repository, _, tag = rest.rpartition(":")
    base = _REGISTRIES.get(host, f"https://{host}")
    url = f"{base}/v2/{repository}/manifests/{tag}"
    headers = {"Accept": ", ".join(_MANIFESTS)}
    try:
        answer = get(url, headers=headers, timeout=_TIMEOUT_S)
        if answer.status_code == requests.codes.unauthorized:
            headers["Authorization"] = f"Bearer {_token(answer, get)}"
            answer = get(url, headers=headers, timeout=_TIMEOUT_S)
    except requests.RequestException as error:
        raise ToolchainError(
            ITEM, f"{host} does not answer for {image}: {error}", "try where it can be reached"
        ) from None
    found = answer.headers.get("Docker-Content-Digest", "")
    if not answer.ok or not re.fullmatch(r"sha256:[0-9a-f]{64}", found):
        raise ToolchainError(ITEM, f"{host} has no digest for {image} (HTTP {answer.status_code})", "see the tag")
    return found


def _token(answer: requests.Response, get: Callable[..., requests.Response]) -> str:
    """A pull token, from where the registry's challenge points (distribution's token authentication)."""
    challenge = dict(_CHALLENGE.findall(answer.headers.get("WWW-Authenticate", "")))
    realm = challenge.pop("realm", "")
    return str(get(realm, params=challenge, timeout=_TIMEOUT_S).json()["token"])


def main() -> int:
    """Run one command; what a user can put right is one line. An exit code."""
    try:
        app(standalone_mode=False)
    except ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
