"""Pulumi takes a key of any namespace; one that was meant for us must not be lost."""

import pytest

from serving.errors import ConfigError
from serving.stack_files import strip_project


def test_misspelt_namespace_is_refused_and_a_providers_is_not() -> None:
    with pytest.raises(ConfigError, match="pd-mi325:model: unknown namespace"):
        strip_project({"pd-mi325:model": "x"})
    assert strip_project({"kubernetes:context": "x", "pd-mi325x:model": "y"}) == {"model": "y"}
