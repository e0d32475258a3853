"""Pulumi's wire format: protobuf structs with marked secrets and not yet known values <-> plain Python values."""

from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf import json_format, struct_pb2

from infra.provider.server import UNKNOWN

__all__ = ["UNKNOWN", "Properties", "secret_keys", "struct", "unknown", "values"]

Properties = dict[str, Any]
# A map with this entry is a marked value; the marks are those of pulumi/sdk (resource/properties.go).
_MARK = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  a mark, no password


def unknown(value: Any) -> bool:
    """Whether anything in it is known only after an update."""
    if isinstance(value, Mapping):
        return any(unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(unknown(item) for item in value)
    return value == UNKNOWN


def values(message: struct_pb2.Struct) -> Properties:
    """Secrets as their content; whole numbers as ints, since a struct's numbers are all doubles."""
    return _plain(json_format.MessageToDict(message))


def secret_keys(message: struct_pb2.Struct) -> set[str]:
    """The properties that are, or hold, a secret."""
    return {key for key, value in json_format.MessageToDict(message).items() if _holds_secret(value)}


def struct(properties: Mapping[str, Any], secrets: Iterable[str] = ()) -> struct_pb2.Struct:
    """`secrets`: the properties that the engine has to encrypt."""
    message = struct_pb2.Struct()
    hidden = set(secrets)
    message.update(
        {key: {_MARK: _SECRET, "value": value} if key in hidden else value for key, value in properties.items()}
    )
    return message


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if _is_secret(value):
            return _plain(value["value"])
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_secret(value: Any) -> bool:
    return isinstance(value, dict) and value.get(_MARK) == _SECRET


def _holds_secret(value: Any) -> bool:
    if isinstance(value, dict):
        return _is_secret(value) or any(_holds_secret(item) for item in value.values())
    return isinstance(value, list) and any(_holds_secret(item) for item in value)
