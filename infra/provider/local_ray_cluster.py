"""A Ray head on this machine: token authentication, loopback only, its own ports and temporary directory.

Inputs: ports {name: port}, workerPorts [first, last], python (interpreter with Ray), environment {name: value},
pythonPath, cpus, model (directory of the rehearsal model).
Outputs: address, serviceUrl, metricsUrls, tokenFile, directory, supervisor {pid, started}.
"""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from threading import Lock

from infra.provider.busy_ports import busy_ports
from infra.provider.processes import HEAD_VARIABLE, Process, end_leftovers, started_for
from infra.provider.ray_api import RayApi
from infra.provider.resource import Operation, Properties, ResourceError

_START_SECONDS = 180.0  # measured 10 to 20 s; 60 s and more while other work holds both cores
_STOP_SECONDS = 60.0
# Ray replaces 127.0.0.1 by the address of a network interface, which a laptop loses when it changes networks.
_NODE_ADDRESS = "127.0.0.2"
_PLUGINS = "plugins"
_INPUTS = ("ports", "workerPorts", "python", "environment", "pythonPath", "cpus", "model")


class LocalRayCluster:
    """Implements infra.provider.resource.Resource."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._started_here: list[Properties] = []

    def check(self, olds: Properties, news: Properties) -> list[str]:
        if sys.platform != "linux":
            return ["a local Ray head needs Linux; name an existing Ray cluster with ray.address instead"]
        if not Path(news["python"]).exists():
            return ["the CPU runtime environment is missing; run: make toolchain"]
        ours = set(olds["ports"].values()) if olds else set()  # the listeners there are our own: seen to by _start
        busy = busy_ports({name: port for name, port in news["ports"].items() if port not in ours})
        return [busy] if busy else []

    def changed(self, olds: Properties, news: Properties) -> bool | list[str]:
        """Any change starts the head anew, in place: a replacement would find the old head's ports in use."""
        changed = any(olds.get(key) != news.get(key) for key in _INPUTS)
        return changed or not _supervisor(olds).alive() or not Path(olds["tokenFile"]).exists()

    def planned(self, inputs: Properties) -> Properties:
        ports = inputs["ports"]
        return {
            "address": f"http://127.0.0.1:{ports['dashboard']}",
            "serviceUrl": f"http://127.0.0.1:{ports['http']}",
            "metricsUrls": [f"http://127.0.0.1:{ports['metrics']}/metrics"],
        }

    def create(self, inputs: Properties, operation: Operation) -> tuple[str, Properties]:
        outputs = self._start(inputs, operation)
        return Path(outputs["directory"]).name, outputs

    def read(self, resource_id: str, outputs: Properties) -> tuple[Properties, Properties] | None:
        # A head whose supervisor was killed may have left processes: it exists as long as anything of it does.
        directory = outputs["directory"]
        if not (_supervisor(outputs).alive() or Path(directory).exists() or started_for(directory)):
            return None
        return {key: outputs[key] for key in _INPUTS}, outputs

    def update(self, resource_id: str, olds: Properties, news: Properties, operation: Operation) -> Properties:
        """The head died, or its settings changed."""
        _stop(olds, operation)
        return self._start(news, operation)

    def delete(self, resource_id: str, outputs: Properties, operation: Operation) -> None:
        _stop(outputs, operation)

    def interrupted(self) -> None:
        with self._lock:
            while self._started_here:
                _stop(self._started_here.pop(), None)

    def _start(self, inputs: Properties, operation: Operation) -> Properties:
        if busy := busy_ports(inputs["ports"]):
            raise ResourceError(busy)
        _make_model(inputs, operation)
        # Ray puts Unix sockets below its directory, and their paths may have 107 bytes: so a short one.
        directory = Path(tempfile.mkdtemp(prefix="pd-", dir="/tmp"))
        _declare_plugins(directory, inputs["pythonPath"])
        (directory / "tmp").mkdir()
        token = directory / "token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(32))
        outputs = {**self.planned(inputs), "tokenFile": str(token), "directory": str(directory)}
        with (directory / "head.log").open("wb") as log:
            supervisor = subprocess.Popen(
                [sys.executable, "-m", "infra.provider.supervisor", *_command(inputs, directory)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=_environment(inputs, token),
                cwd=Path(__file__).parents[2],
                start_new_session=True,
            )
        outputs["supervisor"] = Process.of(supervisor.pid).as_properties()
        try:
            _await_dashboard(outputs, supervisor, operation)
            # The dashboard can take seconds to answer, in which the user, or the engine, may be gone.
            operation.wait("Pulumi to note the Ray head down", seconds=0)
            with self._lock:
                self._started_here.append(outputs)
            assert supervisor.stdin is not None  # noqa: S101
            supervisor.stdin.write(b"keep\n")
            supervisor.stdin.close()
        except BaseException:
            _stop(outputs, None)
            supervisor.wait()
            raise
        return outputs


def _command(inputs: Properties, directory: Path) -> list[str]:
    ports, (first_worker, last_worker) = inputs["ports"], inputs["workerPorts"]
    flags = {
        "node-ip-address": _NODE_ADDRESS,
        "port": ports["gcs"],
        "dashboard-host": "127.0.0.1",
        "dashboard-port": ports["dashboard"],
        "dashboard-agent-listen-port": ports["dashboard_agent"],
        "dashboard-agent-grpc-port": ports["dashboard_grpc"],
        "runtime-env-agent-port": ports["runtime_env_agent"],
        "metrics-export-port": ports["metrics"],
        "node-manager-port": ports["node_manager"],
        "object-manager-port": ports["object_manager"],
        "ray-client-server-port": ports["ray_client"],
        "min-worker-port": first_worker,
        "max-worker-port": last_worker,
        "temp-dir": directory / "ray",
        "num-cpus": inputs["cpus"],
    }
    ray = str(Path(inputs["python"]).with_name("ray"))
    arguments = [f"--{name}={value}" for name, value in flags.items()]
    return [ray, "start", "--head", "--block", "--disable-usage-stats", *arguments]


def _environment(inputs: Properties, token: Path) -> dict[str, str]:
    """The head's environment: this process's, less what belongs to Pulumi and to another Ray, plus the inputs'."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PULUMI_", "RAY_", "VLLM_", "VIRTUAL_ENV"))}
    binaries = Path(inputs["python"]).parent
    return {
        **kept,
        "PATH": f"{binaries}:{kept.get('PATH', '')}",
        "PYTHONPATH": f"{token.parent / _PLUGINS}:{inputs['pythonPath']}",
        "TMPDIR": str(token.parent / "tmp"),  # vLLM leaves its sockets in the temporary directory
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        HEAD_VARIABLE: str(token.parent),
        "SPT_NOENV": "1",  # else setproctitle, by which Ray and vLLM rename processes, wipes the line above from them
        **inputs["environment"],
    }


def _declare_plugins(directory: Path, checkout: str) -> None:
    """Let vLLM find this checkout's plugins, as if it were installed: entry points are package metadata."""
    project = tomllib.loads(Path(checkout, "pyproject.toml").read_text())["project"]
    metadata = directory / _PLUGINS / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")


def _make_model(inputs: Properties, operation: Operation) -> None:
    if Path(inputs["model"], "config.json").exists():
        return
    operation.say("making the rehearsal model (configuration and tokenizer; dummy weights)", True)
    made = subprocess.run(
        [inputs["python"], "-m", "serving.rehearsal_model", inputs["model"]],
        env={**os.environ, "PYTHONPATH": inputs["pythonPath"]},
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise ResourceError(f"cannot make the rehearsal model in {inputs['model']}: {_last_line(made.stderr)}")


def _await_dashboard(outputs: Properties, head: "subprocess.Popen[bytes]", operation: Operation) -> None:
    api = RayApi(outputs["address"], token_file=outputs["tokenFile"])
    for _ in range(int(_START_SECONDS)):
        if head.poll() is not None:
            log = Path(outputs["directory"], "head.log").read_text(errors="replace")
            raise ResourceError(f"Ray ended while starting: {_last_line(log)}")
        if api.reachable():
            return
        operation.wait("the Ray head to answer")
    raise ResourceError(f"Ray did not answer on {outputs['address']} within {_START_SECONDS:.0f} s")


def _stop(outputs: Properties, operation: Operation | None) -> None:
    """End the head, every process that came out of it, and its directory."""
    supervisor = _supervisor(outputs)
    if operation:
        operation.say("ending the Ray head", False)
    if not supervisor.end(_STOP_SECONDS):
        raise ResourceError(f"the Ray head (process {supervisor.pid}) did not end within {_STOP_SECONDS:.0f} s")
    end_leftovers(outputs["directory"])
    shutil.rmtree(outputs["directory"], ignore_errors=True)


def _supervisor(outputs: Properties) -> Process:
    return Process(**outputs["supervisor"])


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"
