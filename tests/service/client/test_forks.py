"""Processes that are forked from one that has a client, as servers that load first do."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

from service.client import forks
from tests.service.client.answering_server import answering_server
from tests.service.test_imports import ROOT

FORKING = """
import os, sys
from service.client import Ad, AdrelClient

def ask():
    return client.score("shoe", [Ad("A", text="x")]).model.version  # its caller's port

client = AdrelClient(sys.argv[1], timeout_ms=30_000)
print("parent", ask(), flush=True)
child = os.fork()
if child == 0:
    print("child", ask(), flush=True)
    client.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("parent", ask(), flush=True)
client.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_opens_a_connection_of_its_own_and_leaves_its_parents_open() -> None:
    with answering_server() as server:
        result = subprocess.run(
            [sys.executable, "-W", "error", "-c", FORKING, server.url],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        (_, first), (_, of_the_child), (_, second) = map(str.split, result.stdout.splitlines())
    assert first == second
    assert of_the_child != first


def test_only_what_still_lives_is_renewed() -> None:
    class Counted:
        renewed = 0

        def renew(self) -> None:
            Counted.renewed += 1

    kept, gone = Counted(), Counted()
    forks.renew_in_children(kept)
    forks.renew_in_children(gone)
    del gone
    gc.collect()
    forks._renew_all()
    assert Counted.renewed == 1
