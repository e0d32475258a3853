"""Certificates, keys, tokens and kubeconfig files of a cluster that lives for minutes."""

import base64
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from tools.rehearsal.namespace import ITEM, NODE_ADDRESS
from tools.toolchain.errors import ToolchainError

API_PORT = 6443
SERVER = f"https://{NODE_ADDRESS}:{API_PORT}"
_EC_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
_NAMES = ",".join(
    [
        f"IP:{NODE_ADDRESS}",
        "IP:127.0.0.1",
        "IP:10.96.0.1",  # the `kubernetes` Service: the first address of the service range
        "DNS:localhost",
        "DNS:kubernetes",
        "DNS:kubernetes.default",
        "DNS:kubernetes.default.svc",
        "DNS:kubernetes.default.svc.cluster.local",
    ]
)


@dataclass(frozen=True)
class Credentials:
    """Files in one directory: a CA, a server certificate that it signed, a service account key, a token file."""

    directory: Path
    admin_token: str

    @property
    def ca(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def certificate(self) -> Path:
        return self.directory / "server.crt"

    @property
    def key(self) -> Path:
        return self.directory / "server.key"

    @property
    def service_account_key(self) -> Path:
        return self.directory / "service-accounts.key"

    @property
    def tokens(self) -> Path:
        return self.directory / "tokens.csv"

    def kubeconfig(self, token: str, server: str = SERVER) -> str:
        """A kubeconfig as text, the CA in it, so that it works as a file and as a Pulumi value."""
        ca = base64.b64encode(self.ca.read_bytes()).decode()
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [
                    {"name": "simulated", "cluster": {"server": server, "certificate-authority-data": ca}},
                ],
                "users": [{"name": "user", "user": {"token": token}}],
                "contexts": [{"name": "simulated", "context": {"cluster": "simulated", "user": "user"}}],
                "current-context": "simulated",
            },
            sort_keys=False,
        )


def make(directory: Path) -> Credentials:
    """Write all of it into `directory`, which is made. Raises ToolchainError when openssl fails."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = Credentials(directory, secrets.token_hex(16))
    ca_key = directory / "ca.key"
    _openssl("req", "-x509", *_EC_KEY, "-keyout", ca_key, "-out", made.ca, "-subj", "/CN=simulated-ca", "-days", "30")
    request = directory / "server.csr"
    _openssl("req", *_EC_KEY, "-keyout", made.key, "-out", request, "-subj", "/CN=kube-apiserver")
    names = directory / "names"
    names.write_text(f"subjectAltName={_NAMES}")
    signing = ["-CA", made.ca, "-CAkey", ca_key, "-CAcreateserial"]
    _openssl("x509", "-req", "-in", request, *signing, "-out", made.certificate, "-days", "30", "-extfile", names)
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", made.service_account_key)
    made.tokens.write_text(f"{made.admin_token},admin,1,system:masters\n")
    made.tokens.chmod(0o600)
    return made


def _openssl(*words: str | Path) -> None:
    command = ["openssl", *(str(word) for word in words)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        said = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise ToolchainError(ITEM, f"`openssl {words[0]}` failed: {said}", "install a current OpenSSL")
