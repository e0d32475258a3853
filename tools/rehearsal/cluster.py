"""`SimulatedCluster`: the whole of it, up and down."""

import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import urllib3
from kubernetes import client, config

from tools.rehearsal import control_plane, credentials, install
from tools.rehearsal.component import Component
from tools.rehearsal.kwok_config import kwok_config
from tools.rehearsal.namespace import ITEM, NODE_ADDRESS, Namespace
from tools.rehearsal.nodes import add_nodes, cpu_node, gpu_node
from tools.rehearsal.pods import Pods
from tools.rehearsal.ray_serve import Outcomes
from tools.rehearsal.users import Rules, restricted_token
from tools.toolchain.errors import ToolchainError

ROOT = Path(__file__).resolve().parents[2]
SIMULATED = """\
real       etcd, kube-apiserver, kube-controller-manager, kube-scheduler, KubeRay operator
simulated  nodes, devices, containers (kwok), pod logs and exec, volumes (nothing is stored), Ray in head pods;
           what nodes tell of their RDMA fabric, and what the RDMA gate's pods measure: stand-ins, no byte moves"""
_START_S = 120.0  # measured: 14 s on two cores with other work on them, 35 s with a load of 10
_POLL_S = 0.1
_MESSAGE_CHARACTERS = 300  # of an API error: its headers follow the reason


class SimulatedCluster:
    """A Kubernetes cluster in `directory` (made; not removed), from `__enter__` to `__exit__` or this process's end.

    It has MI325X nodes and CPU nodes as DOKS presents them, and `nodes` (of nodes.py) besides.
    Components, in the order in which they start; they end the other way round: etcd, kube-apiserver, api-door,
    kube-controller-manager, kube-scheduler, kubelet, kwok, volumes, ray-dashboard, ray-operator.
    """

    def __init__(
        self,
        directory: Path,
        *,
        gpu_nodes: int = 4,
        cpu_nodes: int = 2,
        nodes: Sequence[dict[str, Any]] = (),
        operator: bool = True,
    ) -> None:
        self.directory = directory.resolve()
        self.logs = self.directory / "logs"
        self.kubeconfig = self.directory / "kubeconfig"  # by the server's own address: in the namespace only
        self.outside_kubeconfig = self.directory / "outside.kubeconfig"  # by 127.0.0.1: here and in the namespace
        self.pods = Pods(self.directory / "pods")
        self.ray = Outcomes(self.directory / "ray.json")
        self._gpu_nodes = gpu_nodes
        self._cpu_nodes = cpu_nodes
        self._nodes = nodes
        self._operator = operator
        self._components: dict[str, Component] = {}
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> "SimulatedCluster":
        try:
            self._bring_up()
        except (client.ApiException, urllib3.exceptions.HTTPError) as error:
            self.close()
            said = " ".join(str(error).split())[:_MESSAGE_CHARACTERS]
            raise ToolchainError(ITEM, f"its API server failed while it started: {said}", f"see {self.logs}") from None
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def env(self) -> dict[str, str]:
        """For programs run with `enter`: this process's, with the cluster as KUBECONFIG and no proxy to the world."""
        proxies = {name for name in os.environ if name.lower().endswith("_proxy")}
        mine = {name: value for name, value in os.environ.items() if name not in proxies}
        return {**mine, "KUBECONFIG": str(self.kubeconfig)}

    def enter(self, command: Sequence[str]) -> list[str]:
        """`command` as a program in the cluster's network, where pods and the API server have their addresses."""
        return self.namespace.enter(command)

    def api(self) -> client.ApiClient:
        """A client for this process, which is outside, with the administrator's rights."""
        return config.new_client_from_config(str(self.outside_kubeconfig))

    def restricted_kubeconfig(self, name: str, rules: Rules, namespace: str | None = None) -> Path:
        """A kubeconfig for both sides, of a new user with these RBAC rules in one namespace, or in all for None."""
        with self.api() as api:
            token = restricted_token(api, name, rules, namespace)
        path = self.directory / f"{name}.kubeconfig"
        self._write(path, self._credentials.kubeconfig(token, self._door))
        return path

    def start(self, name: str) -> None:
        """Start the component `name` again (not api-door); after etcd and kube-apiserver wait until all is ready."""
        self._components[name].start()
        if name in ("etcd", "kube-apiserver"):
            self._wait_ready()

    def stop(self, name: str, kill: bool = False) -> None:
        """End the component `name`, with `kill` by SIGKILL."""
        self._components[name].stop(kill)

    def close(self) -> None:
        """End everything, the last started first; an interruption meanwhile ends only the wait for one of them."""
        self._undo.close()

    def _bring_up(self) -> None:
        for folder in (self.directory, self.logs, self.directory / "tmp"):
            folder.mkdir(parents=True, exist_ok=True)
        self.namespace = Namespace()
        self._undo.callback(self.namespace.close)
        made = self._credentials = credentials.make(self.directory / "credentials")
        self._run("etcd", control_plane.etcd(self.directory / "etcd"))
        self._run("kube-apiserver", control_plane.apiserver(made, self.directory / "credentials"))
        self._open_door()
        self._write(self.kubeconfig, made.kubeconfig(made.admin_token))
        config_file = self.directory / "kwok.yaml"
        config_file.write_text(kwok_config(self.directory))
        definitions = install.kuberay_definitions() if self._operator else []  # while the API server starts
        self._wait_ready()
        self._run("kube-controller-manager", control_plane.controller_manager(made, self.kubeconfig))
        self._run("kube-scheduler", control_plane.scheduler(made, self.kubeconfig))
        self._run("kubelet", _module("kubelet", self.pods.root, self.kubeconfig, made.certificate, made.key))
        self._run("kwok", control_plane.kwok(self.kubeconfig, config_file))
        self._run("volumes", _module("volumes", self.kubeconfig))
        self._run("ray-dashboard", _module("ray_dashboard", self.directory / "ray.json", self.kubeconfig))
        with self.api() as api:
            self._install(api, definitions)
        for component in self._components.values():
            component.check()

    def _install(self, api: client.ApiClient, definitions: list[dict[str, Any]]) -> None:
        install.storage(api)
        install.define(api, definitions)
        gpus = [gpu_node(f"mi325x-{number}") for number in range(self._gpu_nodes)]
        cpus = [cpu_node(f"system-{number}") for number in range(self._cpu_nodes)]
        add_nodes(api, [*gpus, *cpus, *self._nodes])
        if self._operator:
            self._wait("KubeRay's definitions are not served", lambda: install.served(api))
            self._run("ray-operator", control_plane.ray_operator())
        core: Any = client.CoreV1Api(api)
        # Pods are refused until the controller manager has made their namespace's service account.
        self._wait("no default service account", lambda: core.list_namespaced_service_account("default").items)

    def _run(self, name: str, command: list[str], pass_fds: Sequence[int] = ()) -> None:
        # The Kubernetes client leaves its CA in a temporary file when it is killed.
        own = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "TMPDIR": str(self.directory / "tmp")}
        component = Component(name, self.namespace.contain(command), self.logs / f"{name}.log", {**self.env, **own})
        self._components[name] = component
        self._undo.callback(component.stop)
        component.start(pass_fds)

    def _open_door(self) -> None:
        """127.0.0.1 of this machine, a free port -> the API server."""
        # Closed here once the forwarder has it: without one, a client shall be refused and not wait.
        with socket.create_server(("127.0.0.1", 0)) as door:
            self._door = f"https://127.0.0.1:{door.getsockname()[1]}"
            words = _module("forwarder", door.fileno(), NODE_ADDRESS, credentials.API_PORT)
            self._run("api-door", words, pass_fds=[door.fileno()])
        self._write(self.outside_kubeconfig, self._credentials.kubeconfig(self._credentials.admin_token, self._door))

    def _wait_ready(self) -> None:
        with self.api() as api:
            self._wait("kube-apiserver is not ready", lambda: _is_ready(api))

    def _wait(self, problem: str, done: Callable[[], object]) -> None:
        deadline = time.monotonic() + _START_S
        while not done():
            for name in ("etcd", "kube-apiserver"):
                self._components[name].check()
            if time.monotonic() > deadline:
                raise ToolchainError(ITEM, f"{problem} after {_START_S:.0f} s", f"see {self.logs}")
            time.sleep(_POLL_S)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o600)


def _module(name: str, *words: object) -> list[str]:
    return [sys.executable, "-m", f"tools.rehearsal.{name}", *(str(word) for word in words)]


def _is_ready(api: client.ApiClient) -> bool:
    try:
        request = api.param_serialize("GET", "/readyz", auth_settings=["BearerToken"])
        return api.call_api(*request).status == 200
    except (client.ApiException, urllib3.exceptions.HTTPError, OSError):
        return False
