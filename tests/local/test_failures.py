"""What a user sees when an application cannot start, on the real Ray."""

from tests.local.conftest import destroy, new_deployment
from tests.shell import Shell, assert_one_clear_line


def test_an_application_that_never_becomes_healthy_shows_its_real_reason(user: Shell) -> None:
    """One that Ray refuses to build, then one whose engine gives up: both on the head that the first left running."""
    engine = {"max_model_len": 2048, "enforce_eager": True}
    refused = engine | {"vllm": {"no_such_argument": 1}}
    broken = new_deployment(user, "local-agg-2", topology="agg-1", engine={"all": refused})
    try:
        up = user.run("pulumi up --yes --stack local-agg-2", 900)
        assert_one_clear_line(up, "'llm' is DEPLOY_FAILED", "no_such_argument")
        assert broken.ray().applications() == {}

        # Fewer tokens a step than sequences: only the engine itself finds that out.
        user.write_stack("local-agg-2", engine={"all": engine | {"max_num_batched_tokens": 100}})
        up = user.run("pulumi up --yes --stack local-agg-2", 900)
        assert_one_clear_line(up, "'llm' is", "LLMServer:rehearsal-qwen3-moe", "max_num_batched_tokens")
        assert broken.ray().applications() == {}
    finally:
        destroy(broken)
