from __future__ import annotations

from pathlib import Path

import pytest

from service.workers.core_sets import CoreShare
from service.workers.spec import Inherited, WorkerSpec


@pytest.mark.parametrize("admin_listener", [None, 9])
def test_what_a_worker_is_told_gets_there_whole(admin_listener: int | None) -> None:
    inherited = Inherited(link=3, counts=4, listener=5, admin_listener=admin_listener)
    spec = WorkerSpec(2, 4, CoreShare((0, 5), 2), inherited, Path("/a folder"))
    assert WorkerSpec.from_json(spec.to_json()) == spec
