"""The counters are exactly what the requests were, and the benchmark's proof holds on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from simulated_client import AGGREGATED, PD, settings, stream

from benchmarks.evidence import KvProof, prove_kv
from benchmarks.metrics import Counters, scrape_target
from benchmarks.nic_counters import increase, read_nics
from benchmarks.prompt_tokens import CACHED_TOKENS, LOCAL_HITS, PROMPT_TOKENS, prompt_tokens
from benchmarks.records import Request
from benchmarks.transfer import together
from benchmarks.transport import judge
from tools.simulated_server.misbehaviour import Misbehaviour
from tools.simulated_server.model import Arrangement
from tools.simulated_server.running import Running, simulated
from tools.simulated_server.settings import Settings

LENGTHS = [1, 15, 16, 17, 100, 256]


def prompt(number: int, length: int) -> str:
    return chr(ord("a") + number) * length


def record(length: int) -> Request:
    """What the benchmark needs to know of a request for its proof."""
    known: dict[str, Any] = {
        "prompt_tokens": length,
        "output_tokens": 4,
        "error": None,
        "gaps_ms": (),
        "prompt_id": "p",
        "asked": 4,
    }
    times = dict.fromkeys(("sent_s", "due_s", "end_s", "ttft_ms", "e2e_ms"), 1.0)
    return Request(**{**known, **times})


def send(running: Running, lengths: list[int]) -> Counters:
    """The increase of the counters over one request of each length, all different."""
    before = scrape_target(running.target)
    for number, length in enumerate(lengths):
        stream(running.url, prompt(number, length), 4)
    return scrape_target(running.target).since(before)


def proof(running: Running, lengths: list[int]) -> KvProof:
    delta = send(running, lengths)
    return prove_kv(running.target, [record(length) for length in lengths], delta)


def test_pd_moves_the_whole_blocks_of_every_prompt_and_is_proven() -> None:
    with simulated(settings(PD)) as running:
        found = proof(running, LENGTHS)
    assert found.verdict == "proven", found.reasons
    blocks = 1 + 1 + 1 + 2 + 7 + 16
    assert found.counted_bytes == found.expected_bytes == blocks * 16 * 1024
    assert found.counted_transfers == found.vllm_transfers == len(LENGTHS)
    assert found.decode_computed_tokens == len(LENGTHS)  # the last one of each prompt, as with vLLM
    assert found.tokens
    assert found.tokens.prefill == {running.server.deployment.replicas[0].name: sum(LENGTHS)}
    reads = together(found.transfers)
    assert reads
    assert (reads.mean_transfer_ms, reads.mean_post_ms) == (pytest.approx(2), pytest.approx(2))
    assert found.replica_changes == []
    assert found.foreign_requests == 0


def test_blocks_that_decode_has_already_do_not_move_and_the_proof_still_holds() -> None:
    with simulated(settings(PD)) as running:
        stream(running.url, "s" * 100, 4)
        before = scrape_target(running.target)
        stream(running.url, "s" * 100 + "t" * 20, 4)
        found = prove_kv(running.target, [record(120)], scrape_target(running.target).since(before))
    assert found.verdict == "proven", found.reasons
    assert found.decode_cached_tokens == 96
    assert found.counted_bytes == (128 - 96) * 1024


def test_aggregated_counts_requests_prompts_and_no_kv() -> None:
    with simulated(settings()) as running:
        delta = send(running, LENGTHS)
        found = prove_kv(running.target, [record(length) for length in LENGTHS], delta)
    assert found.verdict == "not applicable"
    assert found.foreign_requests == 0
    assert delta.total("ray_vllm_request_success_total") == len(LENGTHS)
    assert delta.total("ray_vllm_generation_tokens_total") == 4 * len(LENGTHS)
    assert delta.total(PROMPT_TOKENS) == sum(LENGTHS)
    assert delta.total(CACHED_TOKENS) is None  # shown from its first increment on, as with Ray
    assert delta.total("ray_pd_kv_bytes_transferred_total") is None


def test_the_prefix_hit_rate_is_the_one_of_the_prompts() -> None:
    """48 of 64 tokens are shared: the first prompt fills the cache, the others hit three blocks each."""
    with simulated(settings()) as running:
        for number in range(5):
            stream(running.url, "s" * 48 + prompt(number, 16), 4)
        now = scrape_target(running.target)
    assert now.total(LOCAL_HITS) == now.total(CACHED_TOKENS) == 4 * 48
    assert now.total("ray_vllm_prefix_cache_queries_total") == 5 * 64


def test_the_next_turn_of_a_conversation_hits_the_last_ones_prompt_and_answer() -> None:
    with simulated(settings()) as running:
        first = stream(running.url, "q" * 40, 24)
        stream(running.url, "q" * 40 + "".join(first.texts) + "and then?", 4)
        assert scrape_target(running.target).total(LOCAL_HITS) == 64


def test_without_a_cache_nothing_is_hit_or_asked() -> None:
    with simulated(settings(replace(AGGREGATED, cache_tokens=0))) as running:
        for _ in range(2):
            stream(running.url, "s" * 64, 4)
        now = scrape_target(running.target)
    assert now.total("ray_vllm_prefix_cache_queries_total") is None
    assert prompt_tokens(now).computed_by_all == 128


def test_seconds_are_those_of_the_clients_clock() -> None:
    with simulated(replace(settings(PD), time_scale=2)) as running:
        reads = together(proof(running, [32]).transfers)
    assert reads
    assert reads.mean_transfer_ms == pytest.approx(1)


@pytest.mark.parametrize(
    ("misbehaviour", "causes"),
    [
        ({"kv_not_moved": 1}, {"kv-missing", "kv-recomputed"}),
        ({"kv_recomputed": 1}, {"kv-recomputed"}),
        ({"kv_failed": 1}, {"kv-missing", "kv-failed-transfers", "kv-recomputed"}),
        ({"kv_expired": 1}, {"kv-expired"}),
        ({"foreign": 1}, {"foreign-traffic", "kv-bytes"}),
    ],
)
def test_kv_that_goes_wrong_is_found_by_the_proof(misbehaviour: dict[str, float], causes: set[str]) -> None:
    with simulated(settings(PD, **misbehaviour)) as running:
        found = proof(running, LENGTHS[3:])
    assert causes <= {cause.id for cause in found.causes}, found.reasons


def test_a_restarted_replica_has_a_new_id_and_counts_from_0() -> None:
    with simulated(settings(PD, restart_at_request=4)) as running:
        names = [replica.name for replica in running.server.deployment.replicas]
        stream(running.url, prompt(0, LENGTHS[0]), 4)
        before = scrape_target(running.target)
        for number, length in enumerate(LENGTHS[1:], start=1):
            stream(running.url, prompt(number, length), 4)
        found = prove_kv(running.target, [record(n) for n in LENGTHS[1:]], scrape_target(running.target).since(before))
        after = running.server.deployment.replicas
    assert after[0].name == names[0]
    assert after[1].name != names[1]
    assert after[1].counted.requests == 3
    assert any(names[1] in change for change in found.replica_changes)


@pytest.mark.parametrize(("tcp", "label"), [(False, "rdma"), (True, "tcp")])
def test_on_a_gpu_platform_the_path_of_the_kv_is_shown(tcp: bool, label: str) -> None:
    set_up = Settings(PD, platform="rocm", misbehaviour=Misbehaviour(kv_over_tcp=tcp))
    with simulated(set_up) as running:
        before = read_nics(running.target)
        found = proof(running, LENGTHS)
        nics = increase(before, read_nics(running.target))
    assert found.tokens
    path = judge(running.target, found.transfers, found.tokens.prefill_nodes, nics)
    assert (path.label, path.outcome) == (label, "fault" if tcp else "ok"), path.reason


def test_reads_of_two_decode_replicas_are_counted_apart() -> None:
    arrangement: Arrangement = replace(PD, decode=2, prefill=2)
    with simulated(settings(arrangement)) as running:
        found = proof(running, LENGTHS * 3)
    assert found.verdict == "proven", found.reasons
    assert len(found.transfers) == 2
