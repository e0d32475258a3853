"""What the benchmark's template puts into a cluster."""

import json
from typing import Any

import pulumi
import pytest

from benchmarks.scenario_files import find_scenario
from infra.benchmark_job.deadline import deadline_seconds
from infra.benchmark_target import benchmark_target
from infra.benchmark_template import benchmark_template, claim_spec, cron_job_spec
from infra.late import Late
from serving.stack import Stack, parse_stack
from serving.weights import tokenizer_source, weights_volume

IMAGES = {name: f"registry.example.com/{name}@sha256:{'1' * 64}" for name in ("engine", "benchmark")}
TOKENIZER = "Qwen/Qwen3-235B-A22B-FP8"


def stack(**changes: Any) -> Stack:
    values = {
        "model": "qwen3-235b-a22b-fp8",
        "topology": "1p1d",
        "scenario": "qwen-16k-1k",
        "cluster": {"provider": "doks"},
        "images": IMAGES,
    }
    return parse_stack(values | changes)


def pod_of(settings: Stack, tokenizer: str = TOKENIZER) -> dict[str, Any]:
    return cron_job_spec(settings, "pd-1p1d", tokenizer)["jobTemplate"]["spec"]["template"]["spec"]


def test_it_never_runs_by_itself_and_is_never_repeated() -> None:
    spec = cron_job_spec(stack(), "pd-1p1d", TOKENIZER)
    assert spec["suspend"] is True
    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["schedule"] == "0 0 31 2 *"
    job = spec["jobTemplate"]["spec"]
    assert job["backoffLimit"] == 0
    assert job["activeDeadlineSeconds"] == deadline_seconds(find_scenario("qwen-16k-1k"))
    assert "ttlSecondsAfterFinished" not in job
    assert job["template"]["spec"]["restartPolicy"] == "Never"


def test_jobs_are_found_by_the_labels_of_the_template() -> None:
    template = cron_job_spec(stack(), "pd-1p1d", TOKENIZER)["jobTemplate"]
    for metadata in (template["metadata"], template["spec"]["template"]["metadata"]):
        assert metadata["labels"]["app.kubernetes.io/instance"] == "pd-1p1d"
        assert metadata["labels"]["app.kubernetes.io/component"] == "benchmark"


def test_it_runs_on_a_cpu_node_without_rights() -> None:
    pod = pod_of(stack())
    assert pod["nodeSelector"] == {"doks.digitalocean.com/node-pool": "system"}
    assert "tolerations" not in pod
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    container = pod["containers"][0]
    assert "amd.com/gpu" not in json.dumps(container["resources"])
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    written = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert written == {"/results", "/home/benchmark", "/tmp"}


def test_the_longest_scenario_ends_before_its_deadline() -> None:
    """At 0.25 req/s 1,000 requests and 500 of warm-up take 1.7 h, and each rate may end with a whole timeout."""
    scenario = find_scenario("qwen-16k-4k")
    assert scenario.search is not None
    a_rate = 1.5 * scenario.max_requests / scenario.search.lowest + scenario.request_timeout_s
    assert deadline_seconds(scenario) > scenario.search.most_runs * len(scenario.slo_sets) * a_rate
    assert deadline_seconds(scenario.with_rates([0.01])) > 1.5 * scenario.max_requests / 0.01


def test_a_token_is_named_and_never_shown() -> None:
    container = pod_of(stack(huggingFaceToken="hf_secret"))["containers"][0]
    token = next(variable for variable in container["env"] if variable["name"] == "HF_TOKEN")
    assert token["valueFrom"]["secretKeyRef"]["name"] == "hugging-face-token"
    assert "hf_secret" not in json.dumps(container)
    assert all(variable["name"] != "HF_TOKEN" for variable in pod_of(stack())["containers"][0]["env"])


def test_a_tokenizer_that_is_a_directory_is_mounted() -> None:
    settings = stack(weights={"mode": "nfs", "revision": "a" * 40, "nfs": {"server": "10.0.0.2", "path": "/w"}})
    on_nfs = pod_of(settings, tokenizer_source(settings))
    assert weights_volume(settings).volumes[0] in on_nfs["volumes"]
    on_node = pod_of(stack(), "/opt/tokenizer")
    assert {"name": "tokenizer", "hostPath": {"path": "/opt/tokenizer", "type": "Directory"}} in on_node["volumes"]
    assert len(pod_of(stack())["volumes"]) == len(on_node["volumes"]) - 1


LOCAL = {"mode": "local", "path": "/mnt/scratch/model"}


def test_weights_that_are_on_gpu_nodes_only_are_not_looked_for_on_a_cpu_node() -> None:
    settings = stack(weights=LOCAL)
    assert (tokenizer := tokenizer_source(settings)) == TOKENIZER
    assert all("hostPath" not in volume for volume in pod_of(settings, tokenizer)["volumes"])


@pytest.mark.parametrize(
    "changes",
    [
        {"modelSource": "/mnt/scratch/model"},
        {
            "model": "rehearsal-qwen3-moe",
            "platform": "cpu",
            "cluster": {"provider": "existing", "profile": "kind"},
        },
    ],
    ids=["directory", "model of no hub"],
)
def test_a_model_that_is_on_no_hub_has_its_tokenizer_on_the_cpu_nodes_too(changes: dict[str, Any]) -> None:
    settings = stack(weights=LOCAL, **changes)
    tokenizer = tokenizer_source(settings)
    pod = pod_of(settings, tokenizer)
    (volume,) = [volume for volume in pod["volumes"] if "hostPath" in volume]
    assert volume["hostPath"] == {"path": "/mnt/scratch/model", "type": "Directory"}
    (mount,) = [mount for mount in pod["containers"][0]["volumeMounts"] if mount["name"] == volume["name"]]
    assert (mount["mountPath"], mount["readOnly"]) == (tokenizer, True)


def test_a_pull_secret_and_a_storage_class_only_where_there_is_one() -> None:
    assert "imagePullSecrets" not in pod_of(stack())
    assert pod_of(stack(images={**IMAGES, "pullSecret": "registry"}))["imagePullSecrets"] == [{"name": "registry"}]
    assert "storageClassName" not in claim_spec(stack())
    slow = stack(cluster={"provider": "doks", "nodes": {"storageClass": "slow"}}, results={"size": "5Gi"})
    assert claim_spec(slow)["storageClassName"] == "slow"
    assert claim_spec(slow)["resources"]["requests"]["storage"] == "5Gi"


class _Engine(pulumi.runtime.Mocks):
    """Notes what is registered, by type."""

    def __init__(self) -> None:
        self.made: dict[str, dict[str, Any]] = {}

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        self.made[args.typ] = dict(args.inputs)
        return args.name, dict(args.inputs)

    def call(self, args: pulumi.runtime.MockCallArgs) -> Any:
        return {}


@pytest.fixture
def engine() -> _Engine:
    mocks = _Engine()
    pulumi.runtime.set_mocks(mocks, stack="pd-1p1d")
    return mocks


@pytest.mark.usefixtures("engine")
def test_the_target_names_the_tokenizer_that_the_pod_has() -> None:
    for settings in (stack(), stack(weights=LOCAL), stack(weights=LOCAL, modelSource="/mnt/scratch/model")):
        assert benchmark_target(settings, "http://llm:8000")["tokenizer"] == tokenizer_source(settings)


def test_what_reaches_the_engine(engine: _Engine) -> None:
    known: dict[str, Any] = {}

    @pulumi.runtime.test
    def deploy() -> None:
        target = {"stack": "pd-1p1d", "tokenizer": TOKENIZER, "url": pulumi.Output.from_input("http://llm:8000")}
        known.update(benchmark_template(stack(), "pd-1p1d", target, Late(), pulumi.ResourceOptions(), "llm")[0])

    deploy()
    assert known == {
        "namespace": "llm",
        "cronjob": "benchmark",
        "results_claim": "results",
        "image": IMAGES["benchmark"],
        "stack": "pd-1p1d",
        "scenario": "qwen-16k-1k",
    }
    configuration = engine.made["kubernetes:core/v1:ConfigMap"]
    assert configuration["metadata"]["name"] == "benchmark-target"
    assert json.loads(configuration["data"]["target.json"])["url"] == "http://llm:8000"
    claim = engine.made["kubernetes:core/v1:PersistentVolumeClaim"]
    assert claim["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true", "pulumi.com/patchForce": "true"}
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    cronjob = engine.made["kubernetes:batch/v1:CronJob"]
    # As the API spells them: a key that the SDK had not understood would be dropped or sent as it is.
    assert cronjob["spec"] == cron_job_spec(stack(), "pd-1p1d", TOKENIZER)
