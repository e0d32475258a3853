"""`make stacks`: registers every shipped stack in the current Pulumi backend, so that `pulumi stack select` finds them.

A user who has chosen no backend gets Pulumi's local one, and on a backend without a secrets service a passphrase file.
Stacks that are there already are left alone.
"""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

from tools.toolchain import pulumi_cli
from tools.toolchain.cache import exclusive
from tools.toolchain.checkout import VENV
from tools.toolchain.console import Stopwatch, home_relative, say
from tools.toolchain.errors import ToolchainError
from tools.toolchain.shell_env import passphrase_chosen, passphrase_export, passphrase_file
from tools.toolchain.versions import ROOT

ITEM = "stacks"


def shipped_stacks() -> list[str]:
    """Names of the stack files beside Pulumi.yaml."""
    return sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in ROOT.glob("Pulumi.*.yaml"))


def pulumi(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Pulumi in the checkout without ever asking a question."""
    binary = pulumi_cli.installed() or pulumi_cli.built()
    if binary is None:
        raise ToolchainError(ITEM, "no pulumi", "run `make toolchain`")
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((str(VENV / "bin"), os.environ.get("PATH", os.defpath))),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    if not passphrase_chosen() and passphrase_file().exists():
        environment["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(passphrase_file())
    command = [str(binary), *arguments, "--non-interactive"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def backend() -> str:
    """URL of the current backend; logs in to the local one when the user has chosen none."""
    answer = pulumi("whoami", "--json")
    if answer.returncode == 0:
        return json.loads(answer.stdout)["url"]
    for variable in ("PULUMI_BACKEND_URL", "PULUMI_ACCESS_TOKEN"):
        if os.environ.get(variable):
            raise _failed(f"{variable} is set, but its backend cannot be used", answer, f"correct or unset {variable}")
    if "requires logging in" not in answer.stderr:
        raise _failed("the backend you are logged in to cannot be used", answer, "run `pulumi login`")
    login = pulumi("login", "--local")
    if login.returncode != 0:
        raise _failed("`pulumi login --local` failed", login, "choose a backend with `pulumi login`")
    say(ITEM, "no backend chosen: logged in to Pulumi's local one, ~/.pulumi (`pulumi login` chooses another)")
    return json.loads(pulumi("whoami", "--json").stdout)["url"]


def ensure_passphrase(url: str) -> None:
    """Backends without a secrets service (files, buckets) encrypt with a passphrase: make one unless one is chosen."""
    if url.startswith(("http://", "https://")) or passphrase_chosen():
        return
    place = passphrase_file()
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32))
        say(ITEM, f"made a random passphrase for stack secrets in {home_relative(place)}; keep it")
    say(ITEM, f'Pulumi must be told in every shell: `eval "$(make -s env)"`, or {passphrase_export()}')


def register(names: list[str]) -> list[str]:
    """Create the stacks that the backend lacks; returns their names."""
    listing = pulumi("stack", "ls", "--json")
    if listing.returncode != 0:
        raise _failed("cannot list stacks", listing, "see `pulumi stack ls`")
    # A service backend may say `organization/name`.
    present = {entry["name"].rpartition("/")[2] for entry in json.loads(listing.stdout)}
    missing = [name for name in names if name not in present]
    for number, name in enumerate(missing, start=1):
        created = pulumi("stack", "init", name, "--no-select")
        if created.returncode != 0:
            fix = "if the passphrase is wrong, set PULUMI_CONFIG_PASSPHRASE to the one this stack file was made with"
            raise _failed(f"cannot register {name}", created, fix)
        say(ITEM, f"registered {name} ({number} of {len(missing)})")
    return missing


def _failed(problem: str, result: subprocess.CompletedProcess[str], fix: str) -> ToolchainError:
    lines = [line for line in result.stderr.splitlines() if line.strip()] or ["it printed nothing"]
    said = next((line for line in lines if line.startswith("error:")), lines[-1])
    return ToolchainError(ITEM, f"{problem}: {said.removeprefix('error: ')}", fix)


def _check_folder() -> None:
    """In a folder of links into the checkout Pulumi would change the checkout's files, and not those that are there."""
    if Path.cwd().resolve() != ROOT:
        fix = f"`pulumi stack select --create NAME` here, or `make stacks` in {home_relative(ROOT)}"
        raise ToolchainError(ITEM, "this folder is not the checkout whose stack files are registered", fix)


def _changed(files: list[Path], before: dict[Path, bytes]) -> list[str]:
    return [path.name for path in files if path.read_bytes() != before[path]]


def main() -> int:
    """Register what is missing and say what that changed."""
    watch, names = Stopwatch(), shipped_stacks()
    files = [ROOT / f"Pulumi.{name}.yaml" for name in names]
    try:
        _check_folder()
        with exclusive(ITEM, ITEM):
            before = {path: path.read_bytes() for path in files}
            url = backend()
            ensure_passphrase(url)
            made = register(names)
    except ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    changed = _changed(files, before)
    if changed:
        # Not a choice of ours: Pulumi keeps the salt of a passphrase in the stack file.
        say(
            ITEM,
            f"Pulumi wrote `encryptionsalt` into {len(changed)} stack files, as it always does; commit it in a fork",
        )
    say(ITEM, f"{len(made)} registered, {len(names) - len(made)} already there, in {url} ({watch})")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted; run `make stacks` again to go on", file=sys.stderr)
        sys.exit(130)
