from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.startup_errors import StartupError
from service.workers import folder_life
from service.workers.folder_life import PREFIX, hold, own_folder, remove_folder
from service.workers.shared_folder import GRAPHS


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where temporary files belong, for this test alone."""
    at, memory = tmp_path / "tmp", tmp_path / "memory"
    at.mkdir()
    memory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(at))
    monkeypatch.setattr(folder_life, "MEMORY", str(memory))
    return at


def left_in(place: Path, name: str = f"{PREFIX}a_b1c2d3") -> Path:
    """As a killed service leaves it."""
    folder = place / name
    (folder / GRAPHS / "1").mkdir(parents=True)
    (folder / GRAPHS / "1" / "weights").write_bytes(b"0" * 1000)
    (folder / "bundle").symlink_to(place)
    return folder


@pytest.fixture
def other_process() -> Iterator[Callable[[Path], subprocess.Popen[bytes]]]:
    """Processes that hold a folder until they are killed."""
    started: list[subprocess.Popen[bytes]] = []
    program = (
        "import pathlib, sys\n"
        "from service.workers.folder_life import hold\n"
        "hold(pathlib.Path(sys.argv[1]))\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )

    def start(folder: Path) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_only_its_user_can_look_into_it_and_nothing_stays_of_it() -> None:
    with own_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert (folder / GRAPHS).is_dir()
    assert not folder.exists()
    remove_folder(folder)


def test_where_no_disk_can_be_written_memory_serves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with own_folder() as folder:
        assert folder.parent == tmp_path / "memory"


def test_without_a_place_for_it_the_start_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    monkeypatch.setattr(folder_life, "MEMORY", str(tmp_path / "absent"))
    with (
        pytest.raises(StartupError, match=r"workers: .* temporary folder, and there is none"),
        own_folder(),
    ):
        pass


@pytest.mark.parametrize("where", ["tmp", "memory"])
def test_what_a_killed_service_left_is_removed_by_the_next_start(
    tmp_path: Path, where: str
) -> None:
    left = left_in(tmp_path / where)
    with own_folder() as folder:
        assert folder.exists()
        assert not left.exists()
    assert (tmp_path / where).exists()  # the link in it was not followed


def test_a_folder_is_left_alone_as_long_as_a_process_holds_it_however_that_ends(
    place: Path, other_process: Callable[[Path], subprocess.Popen[bytes]]
) -> None:
    used = left_in(place)
    first, second = other_process(used), other_process(used)
    for holder in (first, second):
        with own_folder():
            assert used.exists()
        holder.kill()
        holder.wait()
    with own_folder():
        assert not used.exists()


def test_two_services_do_not_take_each_others() -> None:
    with own_folder() as one, own_folder() as other:
        assert one.exists()
        assert one != other


def test_what_is_not_certainly_ours_is_left(place: Path, tmp_path: Path) -> None:
    others = [left_in(place, name) for name in ("adrel-faults-a_b1c2d3", f"{PREFIX}my-own", "x")]
    elsewhere = left_in(tmp_path / "memory", "elsewhere")
    link, file = place / f"{PREFIX}abcdefgh", place / f"{PREFIX}abcdefgi"
    link.symlink_to(elsewhere)
    file.touch()
    with own_folder():
        assert all(path.exists() for path in (*others, elsewhere, link, file))


def test_the_folder_of_another_user_is_left(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = left_in(place)
    monkeypatch.setattr(os, "getuid", lambda: left.stat().st_uid + 1)
    with own_folder():
        assert left.exists()


def test_a_folder_that_another_start_removed_before_it_was_held_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_hold, n_made = hold, 0

    def hold_late(folder: Path) -> int:
        nonlocal n_made
        n_made += 1
        if n_made == 1:
            folder.rmdir()
            return real_hold(folder)
        lock = real_hold(folder)
        if n_made == 2:
            folder.rmdir()
        return lock

    monkeypatch.setattr(folder_life, "hold", hold_late)
    with own_folder() as folder:
        assert (folder / GRAPHS).is_dir()
        assert [one.name for one in place.iterdir()] == [folder.name]
    assert n_made == 3
