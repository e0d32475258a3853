"""The aggregated stack: broken, mended, orphaned. What it answers is kept for the prefill/decode stack."""

import os
import signal

from tests.local.conftest import destroy
from tests.local.deployment import ANSWER_TOKENS, PROMPT_LENGTHS, Deployment, processes_of
from tests.shell import assert_one_clear_line


def test_an_application_that_never_becomes_healthy_shows_its_real_reason(aggregated_stack: Deployment) -> None:
    """One that Ray refuses to build, then one whose engine gives up: both on the head that the first left running."""
    stack, shell = aggregated_stack, aggregated_stack.shell
    engine = {"max_model_len": 2048, "enforce_eager": True}
    # A preview would refuse both.
    waived = dict.fromkeys(("engine-argument-refused", "batch-below-sequences"), "Ray and vLLM are to find it out")
    up = f"pulumi up --yes --stack {stack.stack}"
    shell.write_stack(
        stack.stack, topology="agg-1", waive=waived, engine={"all": engine | {"vllm": {"no_such_argument": 1}}}
    )
    assert_one_clear_line(shell.run(up, 900), "'llm' is DEPLOY_FAILED", "no_such_argument")
    assert stack.ray().applications() == {}

    # Fewer tokens a step than sequences: only the engine itself finds that out.
    shell.write_stack(stack.stack, engine={"all": engine | {"max_num_batched_tokens": 100}})
    refused = shell.run(up, 900)
    assert_one_clear_line(refused, "'llm' is", "LLMServer:rehearsal-qwen3-moe", "max_num_batched_tokens")
    assert stack.ray().applications() == {}


def test_the_next_update_mends_it(aggregated: Deployment, aggregated_answers: list[list[int]]) -> None:
    assert len([engine for engine in aggregated.engines() if engine.startswith("LLMServer")]) == 2
    assert [len(answer) for answer in aggregated_answers] == [ANSWER_TOKENS] * len(PROMPT_LENGTHS)


def test_a_head_whose_supervisor_was_killed_is_found_again_and_ended(aggregated: Deployment) -> None:
    """kill -9 on the supervisor leaves Ray and the engines running: the next `pulumi destroy` ends them all."""
    before = aggregated.head()
    os.kill(before["supervisor"]["pid"], signal.SIGKILL)
    assert any("VLLM" in process for process in processes_of(before["directory"]))
    aggregated.pulumi("refresh --yes")
    assert aggregated.head()["directory"] == before["directory"], "refresh forgot processes that are still running"
    destroy(aggregated)
