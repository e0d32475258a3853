"""Prometheus counters of the service: scraping, keeping, differences, and waiting until they have settled."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import requests
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.errors import BenchmarkError
from benchmarks.http import direct
from benchmarks.target import Target

# Ray pushes metrics to its node agent every `metrics_report_interval_ms` = 10,000 (ray_config_def.h).
EXPORT_INTERVAL_S = 10.0
SCRAPE_TIMEOUT_S = 10.0

Labels = frozenset[tuple[str, str]]
Series = tuple[str, Labels]


@dataclass(frozen=True)
class Settling:
    """How long to wait for counters. Seconds.

    quiet_s: counters that have not moved for this long have settled; two and a half export intervals, so that one late
    export is not taken for silence. confirm_s: the same once everything is counted that was waited for; one export
    interval and a scrape, because replicas export at different moments, and another one may still have something to
    show. limit_s: give up waiting. poll_s: time between scrapes.
    """

    quiet_s: float = 2.5 * EXPORT_INTERVAL_S
    confirm_s: float = EXPORT_INTERVAL_S + 1.0
    limit_s: float = 12 * EXPORT_INTERVAL_S
    poll_s: float = 1.0


@dataclass(frozen=True)
class Counters:
    """All samples of one scrape of all endpoints: (name, labels) to value.

    In the difference of two scrapes, `gone` are the series that only the earlier one has.
    """

    values: Mapping[Series, float]
    gone: frozenset[Series] = frozenset()

    def total(self, name: str) -> float | None:
        """Sum over all label sets; None when no such series exists."""
        found = [value for (sample, _), value in self.values.items() if sample == name]
        return sum(found) if found else None

    def by_labels(self, name: str) -> dict[Labels, float]:
        """Value for each label set of a name."""
        return {labels: value for (sample, labels), value in self.values.items() if sample == name}

    def since(self, earlier: Counters) -> Counters:
        """The increase from `earlier` to this; a series that was not there before counts from 0."""
        increase = {key: value - earlier.values.get(key, 0.0) for key, value in self.values.items()}
        return Counters(increase, frozenset(earlier.values.keys() - self.values.keys()))

    def only(self, names: Sequence[str]) -> Counters:
        """Just the series of these names."""
        kept = {key: value for key, value in self.values.items() if key[0] in names}
        return Counters(kept, frozenset(key for key in self.gone if key[0] in names))

    def not_finite(self) -> list[str]:
        """Names of those series whose value is NaN or infinite, sorted: Prometheus' text may say so of any."""
        return sorted({name for (name, _), value in self.values.items() if not math.isfinite(value)})


def parse(text: str) -> Counters:
    """Counters from Prometheus text. Raises ValueError when it is not that."""
    return Counters(
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    )


def scrape_text(url: str, what: str = "metrics endpoint") -> str:
    """The text of one endpoint; `what` names it in errors. Raises BenchmarkError when it does not answer 200."""
    try:
        answer = direct().get(url, timeout=SCRAPE_TIMEOUT_S)
    except requests.RequestException as error:
        raise BenchmarkError(
            f"{what} {url} does not answer ({type(error).__name__}); is the service up and the port right?"
        ) from None
    if answer.status_code != 200:
        raise BenchmarkError(f"{what} {url} answered HTTP {answer.status_code}; is it a Prometheus endpoint?")
    return answer.text


def endpoints(target: Target) -> list[str]:
    """The URLs of a target's metrics endpoints as of now. Raises BenchmarkError."""
    if target.metrics_service is None:
        return target.metrics_urls
    return addresses(target.metrics_service, "metrics service", "are the service's pods ready?")


def addresses(url: str, what: str, question: str) -> list[str]:
    """A URL for each address that the host name of `url` has now. Raises BenchmarkError, naming `what` it is.

    The name is resolved at every call: a pod that has been restarted has a new address, and one that is gone must not
    be asked for ever.
    """
    parts = urlsplit(url)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise BenchmarkError(f"{what} {parts.hostname} has no address ({reason}); {question}") from None
    # A pod of a dual-stack cluster has an address of either family, and is one endpoint.
    families = {family for family, *_ in found}
    family = socket.AF_INET if socket.AF_INET in families else socket.AF_INET6
    hosts = sorted({str(address[0]) for kind, _, _, _, address in found if kind == family})
    hosts = [f"[{host}]" if family == socket.AF_INET6 else host for host in hosts]
    return [parts._replace(netloc=f"{host}:{parts.port or 80}").geturl() for host in hosts]


def scrape_target(target: Target, keep: Path | None = None) -> Counters:
    """Scrape every metrics endpoint that a target has now; `keep` as in `scrape`. Raises BenchmarkError."""
    return scrape(endpoints(target), keep)


def scrape(urls: Sequence[str], keep: Path | None = None) -> Counters:
    """Scrape all endpoints once; with `keep`, write each text to `keep`-<index>.prom. Raises BenchmarkError.

    Files are written once every endpoint has answered, so that they always are one whole scrape.
    """
    merged: dict[Series, float] = {}
    texts = [scrape_text(url) for url in urls]
    for url, text in zip(urls, texts, strict=True):
        try:
            merged.update(parse(text).values)
        except ValueError as error:
            raise BenchmarkError(f"metrics endpoint {url} does not speak Prometheus text: {error}") from None
    if keep is not None:
        files = [keep.with_name(f"{keep.name}-{index}.prom") for index in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8")
        for surplus in {*keep.parent.glob(f"{keep.name}-*.prom")} - {*files}:  # an earlier scrape had more endpoints
            surplus.unlink()
    return Counters(merged)


def read_patiently(
    read: Callable[[], Counters], say: Callable[[str], None], limits: Settling | None = None, start: float | None = None
) -> Counters:
    """Read, again and again where that fails: one slow answer must not cost a measured rate.

    Raises BenchmarkError with the last failure once `limit_s` have passed since `start` (default: since this call).
    """
    limits = limits or Settling()
    start = time.monotonic() if start is None else start
    while True:
        try:
            return read()
        except BenchmarkError as error:
            waited = time.monotonic() - start
            if waited >= limits.limit_s:
                raise BenchmarkError(f"{error} (given up after {waited:.0f} s)") from None
            say(f"trying again ({waited:.0f} s of at most {limits.limit_s:.0f} s): {error}")
        time.sleep(limits.poll_s)


def settle(
    read: Callable[[], Counters],
    names: Sequence[str],
    complete: Callable[[Counters], bool],
    say: Callable[[str], None],
    limits: Settling | None = None,
) -> Counters:
    """Read until the counters `names` have been quiet, for a shorter time where `complete` holds, or time is up.

    Returns the last reading. It judges nothing: incomplete counters are for the proof to name. A reading that fails is
    repeated; raises BenchmarkError when it still fails when time is up.
    """
    limits = limits or Settling()
    start = time.monotonic()
    last = read_patiently(read, say, limits, start)
    changed = time.monotonic()
    while True:
        now = time.monotonic()
        quiet = limits.confirm_s if complete(last) else limits.quiet_s
        if now - changed >= quiet or now - start >= limits.limit_s:
            return last
        say(f"waiting for the service's counters ({now - start:.0f} s of at most {limits.limit_s:.0f} s)")
        time.sleep(limits.poll_s)
        fresh = read_patiently(read, say, limits, start)
        if fresh.only(names) != last.only(names):
            changed = time.monotonic()
        last = fresh
