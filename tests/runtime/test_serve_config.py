"""The rendered Serve configs before the judges that count: Ray's schemas and builders, vLLM's arguments, a real NIXL.

Scripts in in_runtime/ run where Ray and vLLM are; each is started once and looks at everything, as imports take half a
minute. Nothing here starts an engine.
"""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from serving.__main__ import app
from serving.replica.nixl_progress import DELAY_VARIABLE
from serving.stack import Stack, parse_stack
from serving.stack_files import PROJECT, ROOT, load_stack, stack_names
from tools.toolchain.environments import interpreter

pytestmark = pytest.mark.xdist_group("imports")  # beside the engines, see conftest.py

SCRIPTS = Path(__file__).parent / "in_runtime"
STACKS = stack_names()
PD = "pd-2p1d"
Config = dict[str, Any]


def run_in_runtime(script: str, *arguments: str | Path, **variables: str) -> str:
    """What a script of in_runtime/ printed. Nothing of another Ray, and no network for vLLM."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "VLLM_", "PD_NIXL_"))}
    environment = {
        **ours,
        "PYTHONPATH": str(ROOT),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        **variables,
    }
    command = [str(interpreter("runtime-cpu")), str(SCRIPTS / script), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def answers(script: str, cases: Config, folder: Path) -> Config:
    (folder / "cases.json").write_text(json.dumps(cases))
    run_in_runtime(script, folder / "cases.json", folder / "results.json")
    return json.loads((folder / "results.json").read_text())


def rendered(name: str) -> Config:
    return yaml.safe_load(CliRunner().invoke(app, ["render", name]).stdout)


# What a slip of the pen in serving/ would make of the config of PD: a description of the slip -> how to make it.
def _args(config: Config) -> Config:
    return config["applications"][0]["args"]


def _rename(mapping: Config, old: str, new: str) -> None:
    mapping[new] = mapping.pop(old)


SLIPS: dict[str, tuple[Callable[[Config], object], str]] = {
    "engine argument": (
        lambda c: _rename(_args(c)["decode_config"]["engine_kwargs"], "max_num_seqs", "max_num_seq"),
        "Unknown engine argument: max_num_seq",
    ),
    "engine argument's value": (
        lambda c: _args(c)["decode_config"]["engine_kwargs"].update(kv_cache_dtype="fp9"),
        "cache_dtype",
    ),
    "KV transfer key": (
        lambda c: _rename(_args(c)["prefill_config"]["engine_kwargs"]["kv_transfer_config"], "kv_role", "kv_rol"),
        "kv_rol",
    ),
    "KV connector": (
        lambda c: _args(c)["decode_config"]["engine_kwargs"]["kv_transfer_config"].update(kv_connector="NixlConector"),
        "NixlConector",
    ),
    "key of LLMConfig": (
        lambda c: _rename(_args(c)["prefill_config"], "placement_group_config", "placement_group"),
        "placement_group",
    ),
    "accelerator type": (
        lambda c: _args(c)["prefill_config"].update(accelerator_type="AMD-Instinct-MI325X"),
        "AMD-Instinct-MI325X",
    ),
    "key of PDServingArgs": (lambda c: _rename(_args(c), "decode_config", "decoder_config"), "decode_config"),
    "deployment name": (
        lambda c: c["applications"][0]["deployments"][1].update(name="Decoder:qwen3-235b-a22b-fp8"),
        "Deployment 'Decoder:qwen3-235b-a22b-fp8' does not exist",
    ),
    "import path": (
        lambda c: c["applications"][0].update(import_path="ray.serve.llm:build_pd_app"),
        "build_pd_app",
    ),
}


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """What Ray and vLLM make of every shipped stack, of every slip, and of PD without its GPU bundles."""
    cases = {name: rendered(name) for name in STACKS}
    for slip, (make, _) in SLIPS.items():
        make(cases.setdefault(slip, rendered(PD)))
    cases["no bundles"] = rendered(PD)
    del _args(cases["no bundles"])["decode_config"]["placement_group_config"]
    return answers("serve_configs.py", cases, tmp_path_factory.mktemp("serve-configs"))


@pytest.mark.parametrize("name", STACKS)
def test_ray_builds_the_application_and_knows_every_deployment(name: str, examined: Config) -> None:
    facts = examined[name]
    assert "error" not in facts, facts
    listed = {d["name"]: d["num_replicas"] for d in rendered(name)["applications"][0]["deployments"]}
    assert {key: d["replicas"] for key, d in facts["deployments"].items()} == listed
    assert facts["ingress"] in listed
    # A replica count that Serve changes by itself is no topology.
    assert not [key for key, d in facts["deployments"].items() if d["autoscaling"]]


@pytest.mark.parametrize("name", STACKS)
def test_replicas_run_on_what_the_platform_has(name: str, examined: Config) -> None:
    stack = load_stack(name)
    gpus = stack.platform_.gpus_per_replica
    engines = examined[name]["engines"]
    assert len(engines) == len(stack.topology_.roles)
    for deployment, engine in engines.items():
        bundles = examined[name]["deployments"][deployment]["bundles"]
        assert sum(bundle.get("GPU", 0) for bundle in bundles) == gpus
        assert engine["gpu"] == (gpus > 0)
        assert engine["executor"] == ("ray" if gpus else "mp")
        assert engine["devices"] == max(1, gpus)
        assert engine["connector"] == ("NixlConnector" if stack.topology_.disaggregated else None)
        if gpus:
            assert examined[name]["deployments"][deployment]["strategy"] == "STRICT_PACK"
            assert all(bundle["accelerator_type:AMD-Instinct-MI325X-OAM"] > 0 for bundle in bundles)
        environment = examined[name]["deployments"][deployment]["environment"]
        assert environment.items() >= stack.platform_.environment.items()


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_refused(slip: str, examined: Config) -> None:
    assert SLIPS[slip][1] in examined[slip].get("error", "accepted")


def test_without_gpu_bundles_ray_would_silently_build_a_cpu_engine(examined: Config) -> None:
    """Why every ROCm stack carries placement_group_config; when this fails, Ray has mended it."""
    decode = examined["no bundles"]["engines"]["Decode:qwen3-235b-a22b-fp8"]
    assert (decode["gpu"], decode["executor"]) == (False, "mp")


def settings_of(name: str) -> Config:
    own = yaml.safe_load((ROOT / f"Pulumi.{name}.yaml").read_text())["config"]
    return {key.removeprefix(f"{PROJECT}:"): value for key, value in own.items()}


CUDA = {"platform": "cuda", "cluster": {"provider": "existing", "nodes": {"gpuResource": "nvidia.com/gpu"}}}
ONE_NODE = {
    "eight GPUs, disaggregated": ("pd-2p1d", {**CUDA, "topology": "5p3d"}),
    "eight GPUs, aggregated": ("agg-2", {**CUDA, "topology": "agg-8"}),
    "as many as one machine takes, disaggregated": ("local-pd-1p1d", {"topology": "3p3d"}),
    "as many as one machine takes, aggregated": ("local-agg-2", {"topology": "agg-6"}),
}
REPLICA_CASES = {name: settings_of(name) for name in STACKS} | {
    case: settings_of(name) | changes for case, (name, changes) in ONE_NODE.items()
}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """What the callback did in every replica of every case, and what Ray then exported."""
    return answers("replica_process.py", REPLICA_CASES, tmp_path_factory.mktemp("replicas"))


@pytest.mark.parametrize("case", REPLICA_CASES)
def test_replicas_on_one_node_never_share_a_port_or_a_cache(case: str, started: Config) -> None:
    stack: Stack = parse_stack(REPLICA_CASES[case])
    replicas = started["replicas"][case]
    assert len(replicas) == stack.topology_.replicas
    ports: list[int] = []
    for replica in replicas:
        first = int(replica["environment"]["VLLM_NIXL_SIDE_CHANNEL_PORT"])
        # One port per rank of the engine, and the one from which vLLM looks upward for its TCPStore.
        ports += [*range(first, first + replica["devices"]), int(replica["environment"]["VLLM_DP_MASTER_PORT"])]
    assert len(set(ports)) == len(ports)
    assert max(ports) < 32768  # Linux hands out anything above to anyone
    if stack.local_ports:
        assert min(ports) > max(stack.local_ports.listeners().values())
        assert max(ports) < stack.local_ports.first_worker
    for variable in ("VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        assert len({replica["environment"][variable] for replica in replicas}) == len(replicas)


@pytest.mark.parametrize("case", REPLICA_CASES)
def test_engine_and_replica_process_see_the_same_variables(case: str, started: Config) -> None:
    """vLLM reads some in the replica's process and some in workers, which Ray starts with the runtime environment."""
    stack = parse_stack(REPLICA_CASES[case])
    for replica in started["replicas"][case]:
        assert "VLLM_NIXL_SIDE_CHANNEL_PORT" in replica["process_environment"]
        expected = {**stack.platform_.environment, **replica["process_environment"]}
        assert replica["environment"].items() >= expected.items()


def test_only_replicas_that_move_kv_count(started: Config) -> None:
    """Aggregated replicas come first; from the first prefill replica on the process counts."""
    counting = [replica["counting"] for replicas in started["replicas"].values() for replica in replicas]
    roles = [replica["role"] for replicas in started["replicas"].values() for replica in replicas]
    assert counting == [role != "aggregated" for role in roles]


def test_ray_exports_every_transfer_exactly_once(started: Config) -> None:
    """Although dozens of replicas called install() in that process, and where vLLM's own sum is off."""
    values: Counter[str] = Counter()
    for sample in started["metrics"]:
        values[sample["name"]] += sample["value"]
    assert values["ray_pd_kv_bytes_transferred_total"] == started["bytes"] == 2_228_224
    assert values["ray_pd_kv_descriptors_total"] == started["descriptors"]
    assert values["ray_pd_kv_transfers_total"] == 8
    assert values["ray_pd_kv_transfer_seconds_total"] == pytest.approx(2)
    assert values["ray_pd_kv_post_seconds_total"] == pytest.approx(2)
    # vLLM's method ran too: its histogram has all eight. Why its sum is no proof: facts in serving/replica/kv_counters.
    assert values["ray_vllm_nixl_bytes_transferred_count"] == 8


def test_counters_say_whose_they_are(started: Config) -> None:
    """And what its engine let UCX use, which is the one thing a counter can know of the path of its bytes."""
    keys = ("deployment", "replica", "transports")
    tags = {tuple(s["labels"][key] for key in keys) for s in started["metrics"] if "pd_kv" in s["name"]}
    first = next(name for name, replicas in started["replicas"].items() if replicas[0]["counting"])
    allowed = parse_stack(REPLICA_CASES[first]).platform_.environment["UCX_TLS"]
    assert tags == {(f"Prefill:{REPLICA_CASES[first]['model']}", "prefill-0", allowed)}


def test_replicas_say_what_their_image_has(started: Config) -> None:
    """Exported as one series for each component, once, however many replicas started in that process."""
    told = [sample for sample in started["metrics"] if sample["name"] == "ray_pd_stack_info_total"]
    found = {(s["labels"]["component"], s["labels"]["version"], s["value"]) for s in told}
    assert found == {("vllm", "0.18+rocm700", 1.0), ("ucx_commit", "da3fac2", 1.0)}
    assert len(told) == 2


def test_idle_nixl_agent_leaves_the_core_to_others() -> None:
    """Measured on a busy machine: 0.01 to 0.02 of a core with the plugin, 0.4 to 0.6 without; idle, 0.8 to 1."""
    delay = load_stack("local-pd-1p1d").platform_.environment[DELAY_VARIABLE]

    def share(**variables: str) -> float:
        return float(run_in_runtime("idle_nixl_agent.py", "2", **variables).splitlines()[-1].split()[0])

    resting = share(**{DELAY_VARIABLE: delay})
    assert resting < 0.1
    assert share() > 3 * resting  # what the plugin is for: when this fails, NIXL rests by itself
