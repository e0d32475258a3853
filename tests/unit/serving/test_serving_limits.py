"""Numbers beyond all sense, switches in their place, names that vLLM does not read; and no pattern in any message."""

from typing import Any

import pytest
from serving_command import QWEN

from serving.cluster import NodePoolStack
from serving.errors import ConfigError
from serving.node_profiles import NodeProfile
from serving.stack import Stack, parse_settings

TOKEN = "hf_do-not-show"


def doks(**cluster: Any) -> dict[str, Any]:
    return {"cluster": {"provider": "doks", **cluster}}


def vllm(**arguments: Any) -> dict[str, Any]:
    return {"engine": {"all": {"vllm": arguments}}}


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"topology": "999999p1d"}, "topology", "more than 1000 prefill"),
    ({"topology": "1p1001d"}, "topology", "more than 1000 decode"),
    ({"topology": "agg-1001"}, "topology", "more than 1000 aggregated"),
    ({"topology": f"agg-{'9' * 5000}"}, "topology", "more than 1000 aggregated"),
    ({"ingressReplicas": 1001}, "ingressReplicas", "1000"),
    ({"ingressReplicas": True}, "ingressReplicas", "whole number"),
    ({"readyTimeoutSeconds": 86401}, "readyTimeoutSeconds", "86400"),
    (doks(nodes={"gpusPerNode": True}), "cluster.nodes.gpusPerNode", "whole number, got True"),
    (doks(systemNodes=True), "cluster.systemNodes", "whole number"),
    (vllm(**{"tensor-parallel-size": 4}), "engine.*.vllm.tensor-parallel-size", "follows from the platform"),
    (vllm(**{"max-num-seqs": 4}), "engine.*.vllm.max-num-seqs", "write max_num_seqs beside vllm"),
    (vllm(**{"enable-chunked-prefill": True}), "engine.*.vllm.enable-chunked-prefill", "write enable_chunked_prefill"),
    (vllm(model="x/y"), "engine.*.vllm.model", "follows from the stack's key model"),
    *((doks(vpcIpRange=bad), "cluster.vpcIpRange", "private") for bad in ("10.0.0.0/8", "10.0.0.0/15", "10.0.0.0/25")),
    *((doks(vpcIpRange=bad), "cluster.vpcIpRange", "RFC 1918") for bad in ("198.51.100.0/24", "172.32.0.0/16")),
    *((doks(allowApiFrom=[bad]), "cluster.allowApiFrom.0", "name the networks") for bad in ("0.0.0.0/0", "::/0")),
    *((doks(region=bad), "cluster.region", "slugs") for bad in ("", " ", "ATL1")),
    (doks(nodeSize=""), "cluster.nodeSize", "slugs"),
    *((doks(kubeconfigExpireSeconds=bad), "cluster.kubeconfigExpireSeconds", "3600") for bad in (1, 3599)),
    (doks(kubeconfigExpireSeconds=-1), "cluster.kubeconfigExpireSeconds", "greater than or equal to 0"),
    *(
        ({"huggingFaceToken": bad}, "huggingFaceToken", "set it again: pulumi config set --secret")
        for bad in ("", " ", f"{TOKEN}\n", f" {TOKEN}", f"{TOKEN} x")
    ),
    ({"huggingFaceToken": [TOKEN]}, "huggingFaceToken", "string in quotes"),
    *(
        ({"cluster": {"provider": "stack", "stack": bad}}, "cluster.stack", words)
        for bad, words in {
            "": "is empty",
            **dict.fromkeys(("a/b/c", "ünï nl", "a b", "a\n", "a" * 101), "a stack's name, without organization"),
        }.items()
    ),
]
TAKEN: list[dict[str, Any]] = [
    {"topology": "1000p1000d"},
    {"topology": "agg-1000", "ingressReplicas": "1000", "readyTimeoutSeconds": "86400"},  # Pulumi's numbers are text
    vllm(enable_chunked_prefill=True),
    *(doks(vpcIpRange=good) for good in ("10.0.0.0/16", "172.31.0.0/20", "192.168.5.0/24")),
    doks(allowApiFrom=["203.0.113.0/24", "198.51.100.7/32", "198.51.100.8"]),
    *(doks(kubeconfigExpireSeconds=good) for good in (0, 3600)),
    {"huggingFaceToken": TOKEN},
    *({"cluster": {"provider": "stack", "stack": good}} for good in ("mi325x-4node", "My_Pool.1", "a" * 100)),
]


@pytest.mark.parametrize(("settings", "key", "words"), REFUSED)
def test_refused(settings: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_settings(QWEN | settings)
    line = str(refusal.value)
    assert refusal.value.key == key
    assert words in line
    assert TOKEN not in line


@pytest.mark.parametrize("settings", TAKEN)
def test_taken(settings: dict[str, Any]) -> None:
    parse_settings(QWEN | settings)


@pytest.mark.parametrize("settings", [Stack, NodePoolStack, NodeProfile])
def test_no_message_is_a_pattern(settings: Any) -> None:
    """pydantic would show the regular expression; checks of our own say what is wanted."""
    assert '"pattern"' not in str(settings.model_json_schema()).replace("'", '"')
