"""Reads the stack files that ship with the repository, without Pulumi: for `render` and the tests."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from serving.cluster import NodePoolStack
from serving.errors import ConfigError
from serving.stack import Stack, parse_settings

PROJECT = "pd-mi325x"
ROOT = Path(__file__).resolve().parent.parent


def stack_names() -> list[str]:
    """Names of the shipped stacks that serve something."""
    return [name for name, settings in _all().items() if isinstance(settings, Stack)]


def load_stack(name: str) -> Stack:
    """The validated settings of a shipped stack that serves. Raises ConfigError when there is none or it is wrong."""
    settings = load_settings(name)
    if isinstance(settings, NodePoolStack):
        raise ConfigError("stack", f"{name} only owns nodes", f"stacks that serve: {', '.join(stack_names())}")
    return settings


def load_settings(name: str) -> Stack | NodePoolStack:
    """The validated settings of a shipped stack. Raises ConfigError when there is none or it is wrong."""
    path = ROOT / f"Pulumi.{name}.yaml"
    if not path.exists():
        raise ConfigError("stack", f"no file {path.name}", f"known: {', '.join(_files())}")
    try:
        content = yaml.safe_load(path.read_text()) or {}
    except yaml.YAMLError as error:
        raise ConfigError(path.name, f"is not YAML: {' '.join(str(error).split())}") from None
    config = (content.get("config") or {}) if isinstance(content, dict) else None
    if not isinstance(config, dict):
        raise ConfigError(path.name, "is not a stack file", f"write settings as `{PROJECT}:model: ...` under `config:`")
    return parse_settings(strip_project(config))


def _files() -> list[str]:
    return sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in ROOT.glob("Pulumi.*.yaml"))


def _all() -> dict[str, Stack | NodePoolStack]:
    return {name: load_settings(name) for name in _files()}


def strip_project(config: dict[str, Any]) -> dict[str, Any]:
    """`pd-mi325x:model` -> `model`. Keys of other namespaces (providers) are not ours and are left out.

    Raises ConfigError for a namespace that looks like a misspelling of ours: Pulumi takes any and would not say.
    """
    for key in config:
        namespace = key.partition(":")[0]
        if namespace != PROJECT and get_close_matches(namespace, [PROJECT], cutoff=0.7):
            raise ConfigError(key, "unknown namespace", f"write {PROJECT}:{key.partition(':')[2]}")
    return {key.removeprefix(f"{PROJECT}:"): value for key, value in config.items() if key.startswith(f"{PROJECT}:")}
