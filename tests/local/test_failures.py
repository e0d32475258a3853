"""What a user sees when an engine cannot start, on the real Ray."""

from tests.local.conftest import destroy, new_deployment
from tests.shell import Shell, assert_one_clear_line


def test_an_application_that_never_becomes_healthy_shows_the_replicas_own_error(user: Shell) -> None:
    engine = {"all": {"max_model_len": 2048, "enforce_eager": True, "vllm": {"no_such_argument": 1}}}
    broken = new_deployment(user, "local-agg-2", topology="agg-1", engine=engine)
    up = user.run("pulumi up --yes --stack local-agg-2", 900)
    assert_one_clear_line(up, "LLMServer", "no_such_argument")
    assert broken.ray().applications() == {}
    destroy(broken)
