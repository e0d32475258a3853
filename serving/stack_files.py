"""Reads the stack files that ship with the repository, without Pulumi: for `render` and the tests."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from serving.errors import ConfigError
from serving.stack import Stack, parse_stack

PROJECT = "pd-mi325x"
ROOT = Path(__file__).resolve().parent.parent


def stack_names() -> list[str]:
    """Names of all shipped stacks."""
    return sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in ROOT.glob("Pulumi.*.yaml"))


def load_stack(name: str) -> Stack:
    """The validated settings of a shipped stack. Raises ConfigError when there is none or it is wrong."""
    path = ROOT / f"Pulumi.{name}.yaml"
    if not path.exists():
        raise ConfigError("stack", f"no file {path.name}", f"known: {', '.join(stack_names())}")
    try:
        content = yaml.safe_load(path.read_text()) or {}
    except yaml.YAMLError as error:
        raise ConfigError(path.name, f"is not YAML: {' '.join(str(error).split())}") from None
    config = (content.get("config") or {}) if isinstance(content, dict) else None
    if not isinstance(config, dict):
        raise ConfigError(path.name, "is not a stack file", f"write settings as `{PROJECT}:model: ...` under `config:`")
    return parse_stack({**_defaults(), **strip_project(config)})


def strip_project(config: dict[str, Any]) -> dict[str, Any]:
    """`pd-mi325x:model` -> `model`. Keys of other namespaces (providers) are not ours and are left out.

    Raises ConfigError for a namespace that looks like a misspelling of ours: Pulumi takes any and would not say.
    """
    for key in config:
        namespace = key.partition(":")[0]
        if namespace != PROJECT and get_close_matches(namespace, [PROJECT], cutoff=0.7):
            raise ConfigError(key, "unknown namespace", f"write {PROJECT}:{key.partition(':')[2]}")
    return {key.removeprefix(f"{PROJECT}:"): value for key, value in config.items() if key.startswith(f"{PROJECT}:")}


def _defaults() -> dict[str, Any]:
    """Defaults that Pulumi.yaml declares; Pulumi itself fills them in when it runs the program."""
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["config"]
    return {key: entry["default"] for key, entry in declared.items() if "default" in entry}
