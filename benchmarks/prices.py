"""What a GPU costs for an hour, with its source. The data is in prices.yaml."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import BenchmarkError, first_problem

PRICES_FILE = Path(__file__).with_name("prices.yaml")
DEFAULT_PRICE = "digitalocean-mi325x"


class Price(BaseModel):
    """The price of one GPU for one hour. `read`: the day on which it was read at `source`; None: the user gave it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    provider: str
    gpu: str
    plan: str
    per_gpu_hour: float = Field(gt=0, allow_inf_nan=False)
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    source: str = Field(min_length=1)
    read: date | None
    note: str = ""

    def __str__(self) -> str:
        amount = f"{self.per_gpu_hour:.2f} {self.currency} a GPU-hour"
        if self.read is None:
            return f"{amount} ({self.source})"
        return f"{amount} ({self.provider} {self.gpu}, {self.plan}; {self.source}, read {self.read:%-d %B %Y})"


def load_prices(path: Path = PRICES_FILE) -> dict[str, Price]:
    """All prices of a file, by name. Raises BenchmarkError naming the price and the key at fault."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise BenchmarkError(f"cannot read prices from {path}: {str(error).splitlines()[0]}") from None
    if not isinstance(raw, dict):
        raise BenchmarkError(f"{path}: expected a mapping of price names to prices")
    prices: dict[str, Price] = {}
    for name, body in raw.items():
        try:
            prices[name] = Price.model_validate({"name": name, **(body or {})})
        except (ValidationError, TypeError) as error:
            problem = first_problem(error) if isinstance(error, ValidationError) else "expected a mapping"
            raise BenchmarkError(f"{path}: price {name}: {problem}") from None
    return prices


def find_price(wanted: str, path: Path = PRICES_FILE) -> Price:
    """What `--price` names: a price of the file, or a number of US dollars. Raises BenchmarkError."""
    prices = load_prices(path)
    if wanted in prices:
        return prices[wanted]
    try:
        return Price(
            name="given",
            provider="given",
            gpu="any",
            plan="given",
            per_gpu_hour=float(wanted),
            currency="USD",
            source="as given with --price",
            read=None,
        )
    except ValueError:  # pydantic's is one too
        raise BenchmarkError(
            f"--price {wanted!r}: give dollars for a GPU-hour, such as 2.50, or one of: {', '.join(prices)}"
        ) from None
