from __future__ import annotations

import sys
from pathlib import Path

import pytest

from deploy.clients.published import ask as asked
from deploy.clients.published.check_published import CLIENTS, ask, difference, our_ranking
from tests.end_to_end.running_service import RunningService

OURS = [(1, 0.9), (0, 0.5), (2, 0.1)]


def test_every_client_that_is_installed_can_be_asked() -> None:
    assert sorted(CLIENTS) == sorted(asked.CLIENTS)


def test_another_order_and_another_score_are_differences_and_32_bits_are_none() -> None:
    assert difference(OURS, [(1, 0.9), (0, 0.5), (2, 0.1 + 1e-8)]) == "same"
    assert "another order" in difference(OURS, [(0, 0.9), (1, 0.5), (2, 0.1)])
    assert "another order" in difference(OURS, OURS[:2])
    assert difference(OURS, [(1, 0.9), (0, 0.51), (2, 0.1)]) == "scores off by up to 0.01"


@pytest.mark.parametrize("name", ["cohere_v1", "cohere_v2", "infinity_client", "tritonclient"])
def test_the_clients_that_are_installed_here_rank_as_we_do(
    name: str, service: RunningService
) -> None:
    ranking = ask(Path(sys.prefix), name, service.url)
    assert difference(our_ranking(service.url), ranking) == "same"
