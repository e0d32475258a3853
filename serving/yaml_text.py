"""YAML that every parser reads alike."""

import re
from typing import Any

import yaml

_MAYBE_A_NUMBER = re.compile(r"[-+.]?[0-9]")  # 1e3 and 0o7 are texts to PyYAML and numbers to others


class _Dumper(yaml.SafeDumper):
    """PyYAML does not count `y` and `n` as booleans and leaves them bare; Go's parsers do, and KubeRay is one of them.

    Seen with KubeRay 1.6: UCX_ROCM_COPY_DMABUF=y of a serveConfigV2 reached Ray Serve as the boolean true.
    """

    def ignore_aliases(self, data: Any) -> bool:
        return True  # a reader, and not every parser, follows `&id001` and `*id001`


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    quoted = value in ("y", "Y", "n", "N") or _MAYBE_A_NUMBER.match(value)
    style = "|" if "\n" in value else "'" if quoted else None  # a text of lines as lines
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)


_Dumper.add_representer(str, _text)


def yaml_text(value: Any) -> str:
    """`value` (dicts, lists, texts, numbers) as YAML, keys in their order."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False)
