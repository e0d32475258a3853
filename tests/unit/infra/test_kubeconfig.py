"""Which kubeconfigs our client takes, from content and from files, and what is said about the others; no secrets."""

import base64
import json
import tempfile
import time
from pathlib import Path

import pytest
import yaml
from stand_in_api_server import TOKEN, ApiServer, Json, Kubeconfig, failure, status

from infra.provider.kubeconfig import _renewal, current_context
from infra.provider.kubernetes_api import KubernetesApi


def test_how_credentials_are_renewed(api_server: ApiServer, kubeconfig: Kubeconfig, tmp_path: Path) -> None:
    api_server.answers["/version"] = status(401, "Unauthorized")
    document = kubeconfig()
    content = yaml.safe_dump(document)
    how = (
        "run `pulumi refresh --target '**:KubernetesCluster::**'`, then `pulumi up` in the stack that owns the cluster"
    )
    assert how in failure(lambda: KubernetesApi(content).get("/version"))
    file = tmp_path / "config"
    file.write_text(content)
    assert "get a new kubeconfig" in failure(lambda: KubernetesApi(str(file)).get("/version"))
    plugin = tmp_path / "plugin"
    credential = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "x"}}
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(credential)}'\n")
    plugin.chmod(0o700)
    user = {"exec": {"command": str(plugin), "apiVersion": "client.authentication.k8s.io/v1"}}
    file.write_text(yaml.safe_dump(kubeconfig(user)))
    assert "log in with its credential plugin" in failure(lambda: KubernetesApi(str(file)).get("/version"))
    assert api_server.seen[-1].headers["Authorization"] == "Bearer x"
    doks = _renewal("https://0a1b.k8s.ondigitalocean.com", content=False, has_plugin=False)
    assert "7 days" in doks
    assert "doctl kubernetes cluster kubeconfig save" in doks


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"current-context": "gone"}, "context 'gone' is not in the kubeconfig; set cluster.context to one of: here"),
        ({"current-context": None}, "has no current context; set cluster.context to one of: here"),
        ({"contexts": None}, "set cluster.context to one of: none there"),
        ({"clusters": []}, "context 'here' of the kubeconfig has no cluster with a `server` URL"),
        ({"clusters": [{"name": "c", "cluster": {"server": ""}}]}, "no cluster with a `server` URL"),
        (
            {"users": [{"name": "me", "user": {"exec": {"command": "no-such-plugin"}}}]},
            "`no-such-plugin`, which is not",
        ),
        (
            {"users": [{"name": "me", "user": {"exec": {"command": "false", "args": ["secret"]}}}]},
            "`false`, which failed",
        ),
        ({"users": [{"name": "me", "user": {"exec": {"args": ["secret"]}}}]}, "which failed"),
        ({"users": [{"name": "me", "user": {"client-key-data": "secret!", "token": 7}}]}, "is malformed"),
        ({"users": [{"name": "me", "user": {"tokenFile": "/nowhere/secret"}}]}, "is malformed"),
        ({"users": [{"name": "me", "user": {"exec": "secret"}}]}, "is malformed"),
        ({"users": [{"name": "me", "user": {"client-key-data": "secret!", "token": "x"}}]}, "is malformed"),
        ({"users": [{"name": "me", "user": {"auth-provider": {"name": "oidc", "config": "secret"}}}]}, "failed; run"),
        ({"clusters": 5}, "`clusters` is not a list of entries, each with `name` and `cluster`; get a new kubeconfig"),
        ({"users": "secret"}, "the kubeconfig is malformed: `users` is not a list"),
        ({"contexts": ["secret"]}, "`contexts` is not a list of entries"),
        ({"contexts": {"name": "here"}}, "`contexts` is not a list of entries"),
        ({"contexts": [{"name": ["secret"], "context": {}}]}, "`contexts` is not a list of entries"),
        ({"contexts": [{"name": "here", "context": "secret"}]}, "`contexts` is not a list of entries"),
        ({"current-context": ["secret"]}, "`current-context` is not a name"),
    ],
)
def test_a_kubeconfig_that_does_not_do(kubeconfig: Kubeconfig, change: Json, words: str, tmp_path: Path) -> None:
    content = yaml.safe_dump({**kubeconfig(), **change})
    assert words in failure(lambda: KubernetesApi(content))
    file = tmp_path / "config"
    file.write_text(content)
    assert words.replace("the kubeconfig", f"kubeconfig {file}") in failure(lambda: KubernetesApi(str(file)))
    assert current_context(str(file)) in ("", "here", "gone"), "the program itself only asks for the name"


@pytest.mark.parametrize("text", ["{secret: [", "2024-99-99\n", "secret\n", "- secret\n", "\n"])
def test_a_text_that_is_no_kubeconfig(text: str, tmp_path: Path) -> None:
    assert "the kubeconfig is not a YAML document" in failure(lambda: KubernetesApi(text + "\n"))
    (tmp_path / "config").write_text(text)
    line = failure(lambda: KubernetesApi(str(tmp_path / "config")))
    assert f"kubeconfig {tmp_path / 'config'} is not a YAML document" in line


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = str(tmp_path / "missing")
    assert f"kubeconfig {missing} does not exist; set cluster.kubeconfig" in failure(lambda: KubernetesApi(missing))
    monkeypatch.setenv("KUBECONFIG", missing)
    assert f"kubeconfig {missing} does not exist" in failure(lambda: KubernetesApi())
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "kubeconfig ~/.kube/config does not exist" in failure(lambda: KubernetesApi())
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read: not a text file" in failure(lambda: KubernetesApi(str(tmp_path / "binary")))
    assert "Is a directory" in failure(lambda: KubernetesApi(str(tmp_path)))


def test_several_files_are_merged(
    api_server: ApiServer, kubeconfig: Kubeconfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api_server.answers["/version"] = (200, {})
    one, two = kubeconfig(), kubeconfig(context="there", server="https://the-second-of-a-name.example")
    (tmp_path / "one").write_text(yaml.safe_dump({**one, "contexts": []}))
    (tmp_path / "two").write_text(yaml.safe_dump({**two, "users": [], "current-context": None}))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/one:{tmp_path}/missing:{tmp_path}/two")
    assert "'here' is not in" in failure(lambda: KubernetesApi())
    api = KubernetesApi(context="there")
    assert api.get("/version") == {}
    assert api.server == api_server.url


def test_files_beside_the_kubeconfig(
    api_server: ApiServer, kubeconfig: Kubeconfig, certificate: Path, tmp_path: Path
) -> None:
    api_server.answers["/version"] = (200, {})
    (tmp_path / "ca.pem").write_bytes(certificate.with_name("ca.pem").read_bytes())
    (tmp_path / "token").write_text("from-a-file\n")
    document = kubeconfig({"tokenFile": "token"}, **{"certificate-authority": "ca.pem"})
    del document["clusters"][0]["cluster"]["certificate-authority-data"]
    (tmp_path / "config").write_text(yaml.safe_dump(document))
    assert KubernetesApi(str(tmp_path / "config")).get("/version") == {}
    assert api_server.seen[0].headers["Authorization"] == "Bearer from-a-file"


def _plugin(folder: Path, **status: str) -> Json:
    """The user whose credential plugin answers this."""
    credential = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": status}
    (folder / "plugin").write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(credential)}\nEND\n")
    (folder / "plugin").chmod(0o700)
    return {"exec": {"command": str(folder / "plugin"), "apiVersion": credential["apiVersion"]}}


@pytest.mark.parametrize(
    "token", ["secret\n", "sec\nret-secret", "secret token", " secret", "secret\x00", "secrét-secret"]
)
@pytest.mark.parametrize("origin", ["token", "tokenFile", "exec"])
def test_a_token_that_cannot_be_sent(kubeconfig: Kubeconfig, tmp_path: Path, origin: str, token: str) -> None:
    (tmp_path / "token").write_text(token if token.strip() != "secret" else "\n")
    users = {"token": {"token": token}, "tokenFile": {"tokenFile": str(tmp_path / "token")}}
    user = users[origin] if origin in users else _plugin(tmp_path, token=token)
    line = failure(lambda: KubernetesApi(yaml.safe_dump(kubeconfig(user))))
    assert f"the token of user 'me' in the kubeconfig, from `{origin}`, is empty or has white space" in line
    assert "put the token there and nothing else" in line


def test_a_token_is_looked_at_each_time_it_is_renewed(
    api_server: ApiServer, kubeconfig: Kubeconfig, tmp_path: Path
) -> None:
    api_server.answers["/version"] = (200, {})
    api = KubernetesApi(
        yaml.safe_dump(kubeconfig(_plugin(tmp_path, token="x", expirationTimestamp="2024-01-01T00:00:00Z")))
    )
    assert api.get("/version") == {}
    _plugin(tmp_path, token="secret\n", expirationTimestamp="2024-01-01T00:00:00Z")
    assert "from `exec`, is empty or has white space" in failure(lambda: api.get("/version"))


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("https://joe:secret@127.0.0.1:1", "holds a user or password; remove it, and put credentials into the entry"),
        ("https://secret@127.0.0.1:1", "holds a user or password"),
        ("https://joe:1/secret@127.0.0.1:1", "holds a user or password"),
        ("joe:secret@127.0.0.1", "holds a user or password"),
        ("https://127.0.0.1:1?token=secret", "has `?` or `#` in it; write https://HOST:PORT"),
        ("https://127.0.0.1:1\n", "has white space or other characters in it that no URL has"),
        ("https://127.0.0.1 :1", "has white space"),
        ("127.0.0.1:1", "begins with neither http:// nor https://; write https://HOST:PORT"),
        ("here", "begins with neither"),
        ("ftp://127.0.0.1", "begins with neither"),
        ("https://[", "is not a URL with a host"),
        ("https://", "is not a URL with a host"),
        ("https://127.0.0.1:secret", "a number as port if any"),
        ("https://127.0.0.1:99999", "a number as port if any"),
    ],
)
def test_a_server_that_does_not_do(kubeconfig: Kubeconfig, server: str, words: str) -> None:
    line = failure(lambda: KubernetesApi(yaml.safe_dump(kubeconfig(server=server))))
    assert line.startswith("`server` of cluster 'c' in the kubeconfig ")
    assert words in line


_PLUGIN = {"command": "true", "apiVersion": "v1"}


@pytest.mark.parametrize(
    ("where", "key", "value"),
    [
        *(("cluster", key, 5) for key in ("server", "certificate-authority", "certificate-authority-data")),
        *(("cluster", key, 5) for key in ("tls-server-name", "proxy-url", "insecure-skip-tls-verify")),
        ("cluster", "insecure-skip-tls-verify", "false"),
        ("cluster", "proxy-url", ["secret"]),
        *(("user", key, 5) for key in ("token", "tokenFile", "client-certificate", "client-certificate-data")),
        *(("user", key, {"secret": 1}) for key in ("client-key", "client-key-data", "username", "password")),
        *(("user", "exec", value) for value in ({**_PLUGIN, "command": 5}, {**_PLUGIN, "apiVersion": None})),
        *(("user", "exec", {**_PLUGIN, "args": value}) for value in ("secret", [5])),
        *(("user", "exec", {**_PLUGIN, "env": value}) for value in (5, [5], [{"name": "a", "value": None}])),
        *(("context", key, 5) for key in ("cluster", "user")),
    ],
)
def test_a_value_of_the_wrong_kind(
    kubeconfig: Kubeconfig, capfd: pytest.CaptureFixture[str], tmp_path: Path, where: str, key: str, value: object
) -> None:
    document = kubeconfig({"token": TOKEN} if key != "exec" else {})
    entry = document[f"{where}s"][0]
    entry[where][key] = value
    if key == "exec":
        entry[where]["client-key"] = "secret"
    (tmp_path / "config").write_text(yaml.safe_dump(document))
    line = failure(lambda: KubernetesApi(str(tmp_path / "config")))
    assert f"config is malformed: in {where} {entry['name']!r} `{key}` is n" in line
    assert "secret" not in "".join(capfd.readouterr()), "the official client logs what it cannot read"


def test_what_is_written_to_disk(
    api_server: ApiServer, kubeconfig: Kubeconfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    api_server.answers["/version"] = (200, {})
    key = base64.b64encode(f"a key, new each time {time.time()}".encode()).decode()
    KubernetesApi(yaml.safe_dump(kubeconfig())).get("/version")
    KubernetesApi(yaml.safe_dump(kubeconfig({"client-key-data": key, "client-certificate-data": key})))
    written = list(tmp_path.iterdir())
    assert written, "certificate and key: ssl reads them from files only"
    for file in written:
        assert file.stat().st_mode & 0o777 == 0o600
        assert TOKEN not in file.read_text()


def test_json_is_content_too(api_server: ApiServer, kubeconfig: Kubeconfig) -> None:
    api_server.answers["/version"] = (200, {})
    assert KubernetesApi(json.dumps(kubeconfig())).get("/version") == {}
