from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.startup_errors import InvalidSetting
from service.workers.core_sets import core_shares, split


@given(
    st.lists(st.integers(0, 255), min_size=1, max_size=64, unique=True),
    st.none() | st.floats(0.1, 80),
    st.data(),
)
def test_no_core_belongs_to_two_workers_and_none_is_left_out(
    cores: list[int], quota: float | None, data: st.DataObject
) -> None:
    most = len(cores) if quota is None else max(1, min(len(cores), int(quota)))
    shares = split(cores, quota, data.draw(st.integers(1, most)))
    assert [core for share in shares for core in share.cores] == cores
    assert sum(share.threads for share in shares) == most
    assert all(1 <= share.threads <= len(share.cores) for share in shares)
    sizes = [len(share.cores) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_under_a_quota_workers_keep_fewer_cores_busy_and_may_run_on_all() -> None:
    shares = split(range(64), 8.5, 2)
    assert [(share.cores[0], share.cores[-1], share.threads) for share in shares] == [
        (0, 31, 4),
        (32, 63, 4),
    ]


@pytest.mark.parametrize(("quota", "limit"), [(None, 4), (2.0, 2), (0.5, 1)])
def test_more_workers_than_cores_are_refused_with_the_field_and_the_limit(
    quota: float | None, limit: int
) -> None:
    with pytest.raises(InvalidSetting, match=f"^workers: is 5, over the limit of {limit}, .*"):
        split(range(4), quota, 5)


def test_the_shares_of_this_machine_are_of_its_affinity_mask() -> None:
    (share,) = core_shares(1)
    assert set(share.cores) == os.sched_getaffinity(0)
