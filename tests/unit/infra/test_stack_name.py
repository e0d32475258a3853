"""Which names of a stack are refused, and with what reason."""

import pytest

from infra.namespace import check_stack_name
from serving.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "namespace", "key", "words"),
    [
        ("-x", "space", "stack", "'-x' is no Kubernetes label; letters, digits, -, _ and . inside"),
        ("x.", "space", "stack", "is no Kubernetes label"),
        ("a" * 64, "space", "stack", "has 64 characters, too many for a Kubernetes label; at most 63"),
        ("-" * 64, "", "stack", "at most 63"),
        ("My_Stack", "", "pd-mi325x:namespace", "'My_Stack' cannot be a namespace's"),
        ("kube-x", "", "pd-mi325x:namespace", "the cluster's own"),
    ],
)
def test_a_name_that_does_not_do(name: str, namespace: str, key: str, words: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        check_stack_name(name, namespace)
    assert refusal.value.key == key
    assert words in str(refusal.value)


@pytest.mark.parametrize(("name", "namespace"), [("a" * 63, ""), ("My_Stack.1", "space"), ("x", "")])
def test_a_name_that_does(name: str, namespace: str) -> None:
    check_stack_name(name, namespace)
