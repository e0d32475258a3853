"""Where runs that pass part from runs that fail, by what each says alone: no curve is fitted.

Latency over rate may have a knee: flat while prefill has room and steep once it has none, or a step where a batch no
longer fits. A straight line through both sides of one crosses the bound too low, and its scatter does not show it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# A bend that chance gives once in ten lines counts as one.
BENT = 0.10
# Sum of squares of logarithms that is the error of arithmetic.
NOTHING = 1e-12


def cuts(sides: Sequence[tuple[float, bool]], more: int = 0) -> list[tuple[float, float]]:
    """The neighbouring rates between which a boundary leaves the fewest runs on the wrong side, or up to `more` beyond.

    `sides`: (rate, whether it passes) of each run. In order of rate; empty where all pass, or none.
    """
    ordered = sorted(sides)  # at one rate those that fail first: they then cannot part there
    if len({passes for _, passes in ordered}) < 2:
        return []
    wrong = [
        sum(not passes for _, passes in ordered[:cut]) + sum(passes for _, passes in ordered[cut:])
        for cut in range(1, len(ordered))
    ]
    return [
        (ordered[cut - 1][0], ordered[cut][0]) for cut, count in enumerate(wrong, start=1) if count <= min(wrong) + more
    ]


def is_bent(design: np.ndarray, x: np.ndarray, excess: np.ndarray) -> bool:
    """Whether square and cube of `x` say more of `excess` than chance, beside the columns of `design` (F-test).

    The square is that of a knee, the cube that of a step.
    """
    from scipy import stats  # see benchmarks/boundary.py

    scaled = x / max(float(np.abs(x).max()), 1e-12)
    whole = np.column_stack([design, scaled**2, scaled**3])
    freedom = len(x) - whole.shape[1]
    if freedom < 1 or np.linalg.matrix_rank(whole) < whole.shape[1]:
        return False
    squares = [float(((excess - each @ np.linalg.lstsq(each, excess)[0]) ** 2).sum()) for each in (design, whole)]
    if squares[0] < NOTHING:
        return False
    return (squares[0] - squares[1]) / 2 > squares[1] / freedom * float(stats.f.ppf(1 - BENT, 2, freedom))
