"""Where the chart of KubeRay's operator is, and whether it is there: said in a line before anything is made.

Pulumi's chart resource says the same in two tracebacks, after a namespace and more have been made.
"""

import gzip
import tarfile
import zlib
from pathlib import Path

import pulumi
import requests
import yaml

from serving.errors import ConfigError
from serving.kubernetes_settings import OCI, RayOperator
from serving.versions import versions

_KEY = "pd-mi325x:rayOperator.chart"
_REPOSITORY_SECONDS = 10.0  # a proxy that answers nothing is found out before anybody thinks that `up` hangs
_ELSEWHERE = "set it to a local folder or another chart, or rayOperator.install to preinstalled"
_FILE = "Chart.yaml"
_ARCHIVE = ".tgz"  # as `helm package` and `helm pull` name it
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
# What a registry answers to whom it does not know. The provider may have credentials (`helm registry login`).
_REFUSED = (401, 403)


def check_chart(settings: RayOperator) -> None:
    """Raises ConfigError for a chart that is not where it should be."""
    chart = settings.chart
    if chart.startswith(OCI):
        _check_registry(chart, settings.version)
    elif path := local_chart(chart):
        _check_local(path)
    else:
        public = versions()["kuberay"]
        _check_repository(public["chart_repository"], chart or public["chart"], settings.version)


def local_chart(chart: str) -> str | None:
    """The absolute path of a chart that is a folder or a file, counted from the project; None for one that has a name.

    Absolute, because the provider runs somewhere else.
    """
    if not chart or chart.startswith(OCI):
        return None
    path = Path(pulumi.get_root_directory()) / chart
    looks_like_one = "/" in chart or chart.startswith(".") or chart.endswith(_ARCHIVE)
    return str(path) if looks_like_one or path.exists() else None


def _check_local(path: str) -> None:
    place = Path(path)
    try:
        if place.is_dir():
            problem = "" if (place / _FILE).is_file() else f"folder {path} holds no {_FILE}"
        elif place.is_file():
            problem = "" if path.endswith(_ARCHIVE) and _is_archive(place) else f"file {path} is no packed chart"
        else:
            problem = f"there is no folder {path}"
    except OSError as error:
        problem = f"{path} cannot be read: {error.strerror}"
    if problem:
        fix = f"name the folder with the chart's {_FILE}, or the {_ARCHIVE} that `helm package` made of it"
        raise ConfigError(_KEY, problem, fix)


def _is_archive(file: Path) -> bool:
    """Whether it holds a folder with the chart's file in it."""
    try:
        with tarfile.open(file) as archive:
            return any(name.count("/") == 1 and name.endswith(f"/{_FILE}") for name in archive.getnames())
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile):
        return False


def _check_repository(url: str, chart: str, version: str) -> None:
    """Whether the repository answers and has the chart, which is part of its index."""
    place = f"KubeRay's chart repository {url}"
    answer = _get(place, f"{url.rstrip('/')}/index.yaml")
    if answer is None:
        return
    if not answer.ok:
        raise ConfigError(_KEY, f"{place} answered {answer.status_code}", _ELSEWHERE)
    try:
        found = [str(entry["version"]) for entry in yaml.safe_load(answer.content)["entries"].get(chart) or []]
    except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError):
        raise ConfigError(_KEY, f"{place} has no index of charts", _ELSEWHERE) from None
    if version not in [one.removeprefix("v") for one in found]:
        what = f"chart {chart!r} of version {version}" if found else f"chart {chart!r}"
        raise ConfigError(_KEY, f"{place} has no {what}", _ELSEWHERE)


def _check_registry(chart: str, version: str) -> None:
    """Whether the registry answers, and does not deny that it has the chart (the distribution specification's API)."""
    host, _, repository = chart.removeprefix(OCI).partition("/")
    answer = _get(f"registry {host}", f"https://{host}/v2/{repository}/manifests/{version}")
    if answer is None or answer.ok or answer.status_code in _REFUSED:
        return
    missing = f"has no {repository} of version {version}"
    problem = missing if answer.status_code == requests.codes.not_found else f"answered {answer.status_code}"
    raise ConfigError(_KEY, f"registry {host} {problem}", _ELSEWHERE)


def _get(place: str, url: str) -> requests.Response | None:
    """What it answers; None where only the provider can tell: it trusts the authorities of the system, this does not.

    Raises ConfigError where nothing answers.
    """
    try:
        return requests.get(url, timeout=_REPOSITORY_SECONDS, headers={"Accept": f"{_MANIFEST}, */*"})
    except requests.exceptions.SSLError:
        return None
    except requests.RequestException as error:
        raise ConfigError(_KEY, f"{place} cannot be reached ({type(error).__name__})", _ELSEWHERE) from None
