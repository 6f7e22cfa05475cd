from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from deploy.nginx.loopback import CONFIGURATION, free_port, write
from service.client.affinity import AFFINITY_HEADER
from service.serve import KEEP_ALIVE_S
from service.settings import Settings
from tests.deploy.nginx.running_nginx import program

UNITS = {"ms": 1e-3, "s": 1.0, "k": 2**10, "m": 2**20, "": 1.0}


def directives() -> list[str]:
    """One a line, without comments."""
    lines = CONFIGURATION.read_text(encoding="utf-8").splitlines()
    return [line.partition("#")[0].strip() for line in lines]


def values(name: str) -> list[float]:
    """Of a directive, in seconds or bytes, in the order of the file."""
    found = [re.fullmatch(rf"{name} (\d+)([a-z]*);", line) for line in directives()]
    return [float(one[1]) * UNITS[one[2]] for one in found if one]


def default(name: str) -> float:
    return float(Settings.model_fields[name].default)


def test_nginx_accepts_the_configuration(tmp_path: Path) -> None:
    write(tmp_path, free_port(), ["127.0.0.1:8000"], {})
    command = [program(), "-t", "-p", f"{tmp_path}/", "-c", "nginx.conf"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "warn" not in checked.stderr


def test_a_change_of_what_does_not_stand_in_the_configuration_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'listen 80;' occurs 0 times"):
        write(tmp_path, 1, [], {"listen 80;": ""})


def test_nginx_writes_nowhere_but_in_its_folder(tmp_path: Path) -> None:
    write(tmp_path, free_port(), ["127.0.0.1:8000"], {})
    command = [program(), "-T", "-p", f"{tmp_path}/", "-c", "nginx.conf"]
    subprocess.run(command, capture_output=True, check=True)
    folders = {line.split()[1].rstrip(";") for line in directives() if "_temp_path" in line}
    assert folders <= {path.name for path in tmp_path.iterdir()}
    assert len(folders) == 5  # all that nginx would else look for under /var


def test_nginx_hashes_the_header_that_clients_send() -> None:
    variable = "$http_" + AFFINITY_HEADER.lower().replace("-", "_")
    assert f"map {variable} $affinity_key {{" in directives()
    assert "hash $affinity_key consistent;" in directives()


def test_nginx_closes_idle_connections_before_the_service_does() -> None:
    upstream_s, _ = values("keepalive_timeout")
    assert upstream_s < KEEP_ALIVE_S


def test_nginx_waits_longer_than_any_request_may_take() -> None:
    [read_s] = values("proxy_read_timeout")
    assert read_s > default("max_timeout_ms") / 1000


@pytest.mark.parametrize("name", ["client_max_body_size", "client_body_buffer_size"])
def test_nginx_takes_bodies_as_large_as_the_service_and_keeps_them_in_memory(name: str) -> None:
    assert values(name) == [default("max_body_bytes")]


def test_nginx_gives_a_body_as_much_time_as_the_service() -> None:
    assert values("client_body_timeout") == [default("body_timeout_s")]


def test_a_second_replica_is_asked_only_where_time_is_left_after_the_first() -> None:
    [connect_s] = values("proxy_connect_timeout")
    [retry_s] = values("proxy_next_upstream_timeout")
    assert connect_s < retry_s <= 2 * connect_s
