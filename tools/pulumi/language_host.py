"""A Pulumi language host for Python, for machines where only package registries can be reached.

The official host, `pulumi-language-python`, ships with every Pulumi release archive and in no package registry. This
one is installed into `.venv/bin` only where PATH has no official one. It serves the same gRPC service
(pulumirpc.LanguageRuntime), as far as `up`, `preview`, `refresh`, `destroy` and `about` use it, and runs programs with
Pulumi's own `pulumi-language-python-exec`. It installs no dependencies, makes no SDKs and runs no Python plugins.

The engine starts it with its own address as the argument, reads the port from the first line of standard output, shows
everything after that to the user, and ends it with SIGINT to its process group. It is started for every command, so it
imports as little as it can.
"""

# ruff: noqa: N802 - methods have the names of the gRPC service

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

ENDED = threading.Event()


def _end(_signal: int, _frame: FrameType | None) -> None:
    ENDED.set()


# Before the slow imports: the engine may end the host while it is still starting, and a traceback would reach the user.
for _name in (signal.SIGINT, signal.SIGTERM):
    signal.signal(_name, _end)


def _skip_package_code() -> str:
    """Make pulumi's generated stubs importable without running `pulumi/__init__.py`, which takes a quarter of a second.

    Returns the version of the SDK, from the name of its metadata folder: `importlib.metadata` would read 60 of them.
    """
    package = next(folder / "pulumi" for folder in map(Path, sys.path) if (folder / "pulumi" / "runtime").is_dir())
    for name, folder in (
        ("pulumi", package),
        ("pulumi.runtime", package / "runtime"),
        ("pulumi.runtime.proto", package / "runtime" / "proto"),
    ):
        module = ModuleType(name)
        module.__path__ = [str(folder)]
        sys.modules[name] = module
    metadata = next(package.parent.glob("pulumi-*.dist-info"))
    return metadata.name.removeprefix("pulumi-").removesuffix(".dist-info")


SDK_VERSION = _skip_package_code()

import grpc  # noqa: E402
from google.protobuf import empty_pb2  # noqa: E402
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2  # noqa: E402

# The executor's code for "an error message has already been shown" (in pulumi-language-python-exec).
MESSAGE_SHOWN = 32
# The engine's own limit (sdk/v3/go/common/util/rpcutil): plans of large programs exceed gRPC's default of 4 MiB.
MAX_MESSAGE_BYTES = 400 * 1024**2
PARENT_CHECK_S = 1.0
# Less than the 5 s after which the engine kills the host itself (ExecPlugin in pkg/v3/resource/plugin).
PROGRAM_GRACE_S = 3.0


def interpreter(info: Any) -> Path:
    """The Python a program runs in: Pulumi.yaml's `virtualenv` option, relative to the project, else this one.

    Raises FileNotFoundError with a line for the user.
    """
    options = dict(info.options)
    if "virtualenv" not in options:
        return Path(sys.executable)
    folder = Path(info.root_directory, options["virtualenv"])
    python = folder / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(f"Pulumi.yaml: virtualenv {folder} is not a virtual environment; run `make tools`")
    return python


def required_packages(python: Path) -> list[plugin_pb2.PackageDependency]:
    """The provider plugins that installed packages ask for: one `pulumi-plugin.json` in each package's own folder."""
    found: list[plugin_pb2.PackageDependency] = []
    # The interpreter is a link into the environment; its packages lie beside it, not beside what it links to.
    for file in sorted(python.parent.parent.glob("lib/python3*/site-packages/pulumi_*/pulumi-plugin.json")):
        plugin = json.loads(file.read_text(encoding="utf-8"))
        if plugin.get("resource"):
            found.append(
                plugin_pb2.PackageDependency(
                    kind="resource",
                    name=plugin["name"],
                    version=f"v{plugin['version'].removeprefix('v')}",
                    server=plugin.get("server", ""),
                )
            )
    return found


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """What the engine asks of a language. Methods carry the names of the gRPC service."""

    def __init__(self, engine: str, executor: Path) -> None:
        self._engine = engine
        self._executor = executor
        self._program: subprocess.Popen[bytes] | None = None
        self._cancelled = False

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Learn where the engine listens."""
        self._engine = request.engine_address or self._engine
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        """This host has the SDK's version."""
        return plugin_pb2.PluginInfo(version=SDK_VERSION)

    def GetRequiredPackages(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The plugins to have ready before the program runs; a missing environment is reported by Run."""
        try:
            packages = required_packages(interpreter(request.info))
        except FileNotFoundError:
            packages = []
        return language_pb2.GetRequiredPackagesResponse(packages=packages)

    def Run(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Run the program to its end. `bail` means that the user has already been told why it failed."""
        try:
            python = interpreter(request.info)
        except FileNotFoundError as error:
            return language_pb2.RunResponse(error=str(error))
        if self._cancelled:
            return language_pb2.RunResponse(bail=True)
        self._program = subprocess.Popen(
            self._command(python, request), cwd=request.info.program_directory, env=_environment(python, request)
        )
        code = self._program.wait()
        if code == MESSAGE_SHOWN or self._cancelled:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=f"Program exited with non-zero exit code: {code}" if code else "")

    def About(self, request: Any, context: grpc.ServicerContext) -> Any:
        """For `pulumi about`."""
        return language_pb2.AboutResponse(executable=sys.executable, version=sys.version.split()[0])

    def GetProgramDependencies(self, request: Any, context: grpc.ServicerContext) -> Any:
        """For `pulumi about`."""
        dependencies = [language_pb2.DependencyInfo(name=n, version=v) for n, v in sorted(_distributions().items())]
        return language_pb2.GetProgramDependenciesResponse(dependencies=dependencies)

    def InstallDependencies(self, request: Any, context: grpc.ServicerContext) -> Any:
        """For `pulumi install`: dependencies are the Makefile's affair."""
        yield language_pb2.InstallDependenciesResponse(stdout=b"Python dependencies are installed by `make tools`.\n")

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The user pressed Ctrl-C, or the engine has finished."""
        self.end_program()
        return empty_pb2.Empty()

    def end_program(self) -> None:
        """End the program, if one runs, before the engine's SIGINT can make it print a traceback."""
        self._cancelled = True
        program = self._program
        if program is None or program.poll() is not None:
            return
        program.terminate()
        try:
            program.wait(PROGRAM_GRACE_S)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()

    def _command(self, python: Path, request: Any) -> list[str]:
        options = {
            "monitor": request.monitor_address,
            "engine": self._engine,
            "project": request.project,
            "stack": request.stack,
            "organization": request.organization,
            "root_directory": request.info.root_directory,
            "pwd": request.pwd,
            "dry_run": str(request.dryRun).lower(),
            "parallel": str(request.parallel),
        }
        # In one word, and `--` before the rest: a stack named -x is no option of the executor's.
        words = [f"--{name}={value}" for name, value in options.items() if value]
        program = request.info.entry_point or "."
        return [str(python), "-u", str(self._executor), *words, "--", program, *request.args]


def _environment(python: Path, request: Any) -> dict[str, str]:
    environment = {
        **os.environ,
        "PULUMI_CONFIG": json.dumps(dict(request.config)),
        "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        "VIRTUAL_ENV": str(python.parent.parent),
        "PATH": os.pathsep.join((str(python.parent), os.environ.get("PATH", os.defpath))),
    }
    environment.pop("PYTHONHOME", None)
    return environment


def _distributions() -> dict[str, str]:
    from importlib import metadata  # not needed by up and preview

    return {distribution.name: distribution.version for distribution in metadata.distributions()}


def main() -> None:
    """Serve until the engine says to end or is gone."""
    from concurrent.futures import ThreadPoolExecutor

    parent = os.getppid()
    engine = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")
    host = LanguageHost(engine, Path(sys.prefix) / "bin" / "pulumi-language-python-exec")
    # Run occupies a thread for as long as the program takes; Cancel must still get one.
    server = grpc.server(
        ThreadPoolExecutor(max_workers=4), options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)]
    )
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    # An engine that was killed sends no signal; its child notices by getting another parent.
    while not ENDED.wait(PARENT_CHECK_S) and os.getppid() == parent:
        pass
    host.end_program()
    # Without the interpreter's and gRPC's own farewell, for which the engine would wait.
    os._exit(0)


if __name__ == "__main__":
    main()
