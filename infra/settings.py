"""The only reader of Pulumi configuration."""

import json
from collections.abc import Mapping
from contextlib import suppress

import pulumi

from benchmarks.scenario_files import load_scenarios
from serving.cluster import NodePoolStack
from serving.errors import ConfigError
from serving.stack import Stack, parse_settings
from serving.stack_files import strip_project


def read_settings() -> Stack | NodePoolStack:
    """The selected stack's configuration, validated. Raises ConfigError naming the Pulumi key that is wrong."""
    return settings_of(pulumi.runtime.get_config_env())


def settings_of(config: Mapping[str, str]) -> Stack | NodePoolStack:
    """The same of any configuration, as Pulumi tells it: whole keys, values as text. Raises ConfigError."""
    raw = strip_project(dict(config))  # its errors name the whole key already
    try:
        stack = parse_settings({key: _value(text) for key, text in raw.items()})
        if isinstance(stack, NodePoolStack):
            return stack
        if stack.target == "kubernetes" and not (stack.images and stack.images.build):
            _ = stack.required_images
        if stack.scenario not in (known := load_scenarios()):
            raise ConfigError("scenario", f"unknown scenario {stack.scenario!r}", f"known: {', '.join(known)}")
        return stack
    except ConfigError as error:
        raise ConfigError(f"pd-mi325x:{error.key}", error.problem, error.fix) from None


def _value(text: str) -> object:
    """Pulumi hands every value over as text; objects and lists as JSON."""
    if text.startswith(("{", "[")):
        with suppress(ValueError):
            return json.loads(text)
    return {"true": True, "false": False}.get(text, text)
