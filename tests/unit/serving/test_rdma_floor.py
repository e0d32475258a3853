"""The default floor lies between what a staged path reaches and what a direct one does."""

import pytest

from serving.rdma_gate.floor import default_floor, mib_to_gbps

GB_PER_S = 1e9 / 2**20  # in MiB/s


def test_units() -> None:
    assert mib_to_gbps(1_000) == pytest.approx(8.388608)
    assert mib_to_gbps(default_floor(400, 1, "rocm")) == pytest.approx(200)


def test_at_400_gbps_known_direct_paths_pass_and_staged_ones_do_not() -> None:
    floor = default_floor(400, 1, "rocm")
    assert floor < 27_873  # the public run with ROCm and mlx5
    assert floor < 47 * GB_PER_S
    assert floor > 12 * GB_PER_S


def test_more_nics_count_only_up_to_the_link_of_the_gpu() -> None:
    assert default_floor(100, 2, "rocm") == 2 * default_floor(100, 1, "rocm")
    assert default_floor(400, 8, "rocm") == default_floor(400, 4, "rocm")
    assert mib_to_gbps(default_floor(400, 8, "cuda")) == pytest.approx(252)
    assert default_floor(400, 8, "host") == 8 * default_floor(400, 1, "host")


@pytest.mark.parametrize(("link", "devices"), [(0, 1), (-1, 1), (float("nan"), 1), (400, 0)])
def test_no_link_is_no_floor(link: float, devices: int) -> None:
    with pytest.raises(ValueError, match="no floor"):
        default_floor(link, devices, "rocm")
