"""One node's fabric: everything that is read of it, as one value and as JSON."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from serving.fabric.files import text
from serving.fabric.gpus import Gpus, read_gpus
from serving.fabric.kernel import Kernel, read_kernel
from serving.fabric.sysfs import RdmaDevice, RdmaPort, read_devices


class NodeFabric(BaseModel):
    """What was found, without any judgement: serving/fabric/choose.py has what follows from it.

    `model_dump_json()` writes it and `model_validate_json()` reads it back: what reads a node need not be what decides.
    """

    model_config = ConfigDict(frozen=True)

    hostname: str | None = None
    devices: tuple[RdmaDevice, ...] = ()
    kernel: Kernel = Kernel()
    gpus: Gpus = Gpus()

    @property
    def ports(self) -> tuple[tuple[RdmaDevice, RdmaPort], ...]:
        return tuple((device, port) for device in self.devices for port in device.ports)


def read_node(root: Path = Path("/")) -> NodeFabric:
    """Read a node whose file system is at `root`. Needs no privilege; what is not readable counts as not there.

    The network devices and routes are those of the network namespace this runs in: a pod needs `hostNetwork`.
    """
    return NodeFabric(
        hostname=text(root / "proc/sys/kernel/hostname"),
        devices=read_devices(root),
        kernel=read_kernel(root),
        gpus=read_gpus(root),
    )
