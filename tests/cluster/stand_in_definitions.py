"""Custom resource definitions of other people's operators, played by those in stand_ins/ while a test lasts."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client

from tests.cluster.waiting import eventually

_FOLDER = Path(__file__).with_name("stand_ins")


@contextmanager
def stand_in_definitions(api: client.ApiClient, *files: str, left: Sequence[str] = ()) -> Iterator[None]:
    """Those of stand_ins/<file>.yaml, served; at the end they are gone, with those of `left` that a test has made."""
    extensions: Any = client.ApiextensionsV1Api(api)
    bodies = [body for file in files for body in yaml.safe_load_all((_FOLDER / f"{file}.yaml").read_text())]
    names = [body["metadata"]["name"] for body in bodies]

    def served(name: str) -> bool:
        conditions = extensions.read_custom_resource_definition(name).status.conditions or []
        return any(c.type == "Established" and c.status == "True" for c in conditions)

    def there() -> set[str]:
        found = extensions.list_custom_resource_definition().items
        return {definition.metadata.name for definition in found} & {*names, *left}

    for body in bodies:
        extensions.create_custom_resource_definition(body)
    eventually(lambda: all(served(name) for name in names), "the definitions are served")
    try:
        yield
    finally:
        for name in there():
            extensions.delete_custom_resource_definition(name)
        eventually(lambda: not there(), "the definitions are gone")
