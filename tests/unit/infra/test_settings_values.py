"""Pulumi hands every value to the program as text."""

import pytest

from infra.settings import _value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1p1d", "1p1d"),
        ("", ""),
        ("[x", "[x"),
        ("true", True),
        ('{"provider": "local", "portBase": 19000}', {"provider": "local", "portBase": 19000}),
        ('["http://a"]', ["http://a"]),
    ],
)
def test_a_value_is_what_the_stack_file_says(text: str, value: object) -> None:
    assert _value(text) == value
