"""What each figure of the reference post shows, and which runs it takes to draw it again.

From scripts/generate_blog_charts.py@2b73d93f in anyscale/pd-amd-blogpost. The post's numbers are in no figure here.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.slo import Metric, Slo

PD, AGGREGATED = "PD", "aggregated"


@dataclass(frozen=True)
class Need:
    """Runs of a scenario on a topology."""

    scenario: str
    topology: str

    @property
    def kind(self) -> str:
        return AGGREGATED if self.topology.startswith("agg") else PD

    def __str__(self) -> str:
        return f"{self.scenario} on {self.topology}"


@dataclass(frozen=True)
class Latencies:
    """Mean and p90 of one latency over the request rate, a line for each need. `bound`: of the mean, also a line."""

    key: str
    title: str
    metric: Metric
    needs: tuple[Need, ...]
    bound: Slo | None = None


@dataclass(frozen=True)
class HighestRates:
    """The highest rate that meets an SLO: `slo` by scenario, or, where that is None, the scenario's own."""

    key: str
    title: str
    rows: tuple[tuple[str, tuple[Need, ...]], ...]
    slo: dict[str, tuple[Slo, ...]] | None = None

    @property
    def needs(self) -> tuple[Need, ...]:
        return tuple(need for _, needs in self.rows for need in needs)


@dataclass(frozen=True)
class AtOneRate:
    """Mean of one latency at one request rate, a bar for each need."""

    key: str
    title: str
    metric: Metric
    rate: float
    rows: tuple[tuple[str, tuple[Need, ...]], ...]

    @property
    def needs(self) -> tuple[Need, ...]:
        return tuple(need for _, needs in self.rows for need in needs)


Panel = Latencies | HighestRates | AtOneRate


@dataclass(frozen=True)
class Figure:
    """`shown`: what the post drew, and how that differs from what is drawn here."""

    number: int
    title: str
    shown: str
    panels: tuple[Panel, ...]


def mean_below(metric: Metric, milliseconds: float) -> Slo:
    return Slo(metric=metric, statistic="mean", bound=milliseconds, unit="ms")


_QWEN, _DEEPSEEK = mean_below("tpot", 25), mean_below("tpot", 30)
_POST_SLO = {
    "qwen-16k-1k": (_QWEN,),
    "qwen-8k-1k": (_QWEN,),
    "qwen-8k-1k-hit60": (_QWEN,),
    "deepseek-5k-140-hit30": (_DEEPSEEK,),
    "deepseek-5k-140-hit60": (_DEEPSEEK,),
}


def _pair(scenario: str, pd: str, aggregated: str) -> tuple[Need, Need]:
    return Need(scenario, pd), Need(scenario, aggregated)


_SIX = (
    ("Qwen 16K/1K|2p1d, agg-3", _pair("qwen-16k-1k", "2p1d", "agg-3")),
    ("Qwen 8K/1K|1p2d, agg-3", _pair("qwen-8k-1k", "1p2d", "agg-3")),
    ("DeepSeek 5.4K/140|30 % hits, 1p1d, agg-2", _pair("deepseek-5k-140-hit30", "1p1d", "agg-2")),
    ("DeepSeek 5.4K/140|60 % hits, 1p1d, agg-2", _pair("deepseek-5k-140-hit60", "1p1d", "agg-2")),
    ("Qwen 16K/1K|2p2d, agg-4", _pair("qwen-16k-1k", "2p2d", "agg-4")),
    ("Qwen 8K/1K|60 % hits, 1p2d, agg-3", _pair("qwen-8k-1k-hit60", "1p2d", "agg-3")),
)
_SIZES = (
    ("16 GPUs|1p1d, agg-2", _pair("qwen-16k-1k", "1p1d", "agg-2")),
    ("24 GPUs|2p1d, agg-3", _pair("qwen-16k-1k", "2p1d", "agg-3")),
    ("32 GPUs|2p2d, agg-4", _pair("qwen-16k-1k", "2p2d", "agg-4")),
)
_RATIOS = (
    ("3p1d, 32 GPUs", (Need("qwen-16k-4k", "3p1d"),)),
    ("2p1d, 24 GPUs", (Need("qwen-16k-4k", "2p1d"),)),
    ("1p1d, 16 GPUs", (Need("qwen-16k-4k", "1p1d"),)),
    ("agg-4, 32 GPUs", (Need("qwen-16k-4k", "agg-4"),)),
    ("1p3d, 32 GPUs", (Need("qwen-16k-4k", "1p3d"),)),
)

FIGURES = (
    Figure(
        1,
        "Highest rate under an SLO, six scenarios",
        "The post bounds mean TPOT alone. Its rates are bursts of 50 or 100 requests; these are steady windows.",
        (
            HighestRates("1a", "Under the scenarios' own SLO", _SIX),
            HighestRates("1b", "Under the post's SLO: mean TPOT", _SIX, _POST_SLO),
        ),
    ),
    Figure(
        3,
        "Time to first token over the request rate",
        "The post draws means. It does not say the lengths of its left panel; 16K/1K is taken here, as in Figure 4.",
        (
            Latencies("3a", "TTFT, Qwen 16K/1K, 16 GPUs", "ttft", _pair("qwen-16k-1k", "1p1d", "agg-2")),
            Latencies(
                "3b", "TTFT, DeepSeek, 30 % hits, 16 GPUs", "ttft", _pair("deepseek-5k-140-hit30", "1p1d", "agg-2")
            ),
        ),
    ),
    Figure(
        4,
        "Time per output token over the request rate",
        "The post draws means, and the bound of its SLO as a line.",
        (
            Latencies("4a", "TPOT, Qwen 16K/1K, 24 GPUs", "tpot", _pair("qwen-16k-1k", "2p1d", "agg-3"), _QWEN),
            Latencies(
                "4b",
                "TPOT, DeepSeek, 30 % hits, 16 GPUs",
                "tpot",
                _pair("deepseek-5k-140-hit30", "1p1d", "agg-2"),
                _DEEPSEEK,
            ),
        ),
    ),
    Figure(
        5,
        "Highest rate under an SLO, by number of GPUs",
        "Qwen 16K/1K. The post's SLO is here mean TPOT below 25 ms and mean TTFT below 3 s.",
        (
            HighestRates("5a", "Under the scenario's own SLO", _SIZES),
            HighestRates(
                "5b",
                "Under the post's SLO: mean TPOT, mean TTFT",
                _SIZES,
                {"qwen-16k-1k": (_QWEN, mean_below("ttft", 3000))},
            ),
        ),
    ),
    Figure(
        6,
        "End-to-end latency by P:D ratio, 1.5 req/s",
        "Qwen 16K/4K. As in the post, the numbers of GPUs differ between the bars.",
        (AtOneRate("6", "Mean E2E latency at 1.5 req/s", "e2e", 1.5, _RATIOS),),
    ),
)
