from __future__ import annotations

import asyncio
import hmac
import logging
import threading
from pathlib import Path

import pytest

from service.api.keys import ApiKeys, load_keys
from service.api.keys_file import KeysFile, Reading, Stamp
from service.startup_errors import InvalidSetting

pytestmark = pytest.mark.anyio

FIRST, SECOND, THIRD = "first-key-0123456789", "second.key~0123456789+/", "third_key-0123456789=="


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(f"# since May\n{FIRST}\n\n  {SECOND}  \r\n#{THIRD}\n", encoding="utf-8")
    return file


def put(path: Path, content: str) -> None:
    """Write the file, or take it away."""
    if content:
        path.write_text(content)
    else:
        path.unlink()


def move(path: Path, to: Path) -> None:
    """Put it in the place of the other."""
    path.rename(to)


def test_every_line_of_the_file_is_a_key_but_comments_and_blanks(file: Path) -> None:
    keys = ApiKeys(None, file)
    assert keys.n_keys == 2
    assert keys.holds(FIRST.encode())
    assert keys.holds(SECOND.encode())
    for other in ("", THIRD, f"#{THIRD}", "# since May", FIRST[:-1], FIRST + "0", FIRST.upper()):
        assert not keys.holds(other.encode())


def test_listed_keys_hold_besides_those_of_the_file(file: Path) -> None:
    keys = ApiKeys(f" {THIRD},{FIRST} ,", file)
    assert all(keys.holds(key.encode()) for key in (FIRST, SECOND, THIRD))
    assert not keys.holds(f"{THIRD},{FIRST}".encode())


def test_without_a_list_and_a_file_there_are_no_keys_at_all(file: Path) -> None:
    assert load_keys(None, None) is None
    assert load_keys(FIRST, None) is not None
    assert load_keys(None, file) is not None


@pytest.mark.parametrize("key", ["secret-too-short", "secret key with blanks", "secret-clé-123456",
                                 "secret" * 100, "secret,secret,secret"])  # fmt: skip
@pytest.mark.parametrize("content", ["{key}\n", "# all good\n" + FIRST + "\n{key}"])
def test_what_is_no_key_is_refused_by_its_line_and_never_shown(
    tmp_path: Path, key: str, content: str
) -> None:
    file = tmp_path / "keys"
    file.write_text(content.format(key=key[:-1] if key == "secret-too-short" else key))
    with pytest.raises(InvalidSetting, match=r"api_keys_file: .*keys: line [13] is no key") as told:
        ApiKeys(None, file)
    assert "secret" not in str(told.value)


def test_a_list_without_a_key_is_refused_and_a_bad_key_by_its_place() -> None:
    with pytest.raises(InvalidSetting, match="api_keys: has no key"):
        ApiKeys(" , ", None)
    with pytest.raises(InvalidSetting, match="api_keys: key 2 is no key") as told:
        ApiKeys(f"{FIRST},secret", None)
    assert "secret" not in str(told.value)


async def test_a_change_of_the_file_takes_the_old_keys_and_brings_the_new(file: Path) -> None:
    keys = ApiKeys(THIRD, file)
    await keys.follow_file()
    assert keys.holds(FIRST.encode())
    put(file, f"{SECOND}\n")
    await keys.follow_file()
    assert not keys.holds(FIRST.encode())
    assert keys.holds(SECOND.encode())
    assert keys.holds(THIRD.encode())


async def test_a_file_put_in_the_place_of_the_old_one_is_a_change(file: Path) -> None:
    keys = ApiKeys(None, file)
    other = file.with_name("other")
    put(other, f"{THIRD}\n")
    move(other, file)
    await keys.follow_file()
    assert keys.holds(THIRD.encode())
    assert keys.n_keys == 1


async def test_a_file_that_goes_bad_leaves_the_keys_and_is_told_of_once_without_them(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = ApiKeys(None, file)
    with caplog.at_level(logging.INFO):
        put(file, "secret\n")
        await keys.follow_file()
        await keys.follow_file()
        put(file, "")
        await keys.follow_file()
    assert keys.holds(FIRST.encode())
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert "line 1 is no key" in vars(record)["reason"]
    assert "secret" not in str(vars(record))
    put(file, f"{THIRD}\n")
    await keys.follow_file()
    assert not keys.holds(FIRST.encode())
    assert keys.holds(THIRD.encode())


async def test_what_holds_and_since_when_is_told_whatever_becomes_of_the_file(file: Path) -> None:
    wall_s = [1000.0]
    keys = ApiKeys(THIRD, file, wall_s=lambda: wall_s[0])
    assert (keys.n_keys, keys.loaded_s, keys.file_failed) == (3, 1000, False)
    wall_s[0] = 2000.0
    await keys.follow_file()
    assert keys.loaded_s == 1000
    put(file, "secret\n")
    await keys.follow_file()
    assert (keys.n_keys, keys.loaded_s, keys.file_failed) == (3, 1000, True)
    put(file, f"{FIRST}\n")
    await keys.follow_file()
    assert (keys.n_keys, keys.loaded_s, keys.file_failed) == (2, 2000, False)


async def test_a_file_that_comes_back_as_it_was_has_failed_no_longer(file: Path) -> None:
    keys, aside = ApiKeys(None, file), file.with_name("aside")
    move(file, aside)
    await keys.follow_file()
    assert keys.file_failed
    move(aside, file)
    await keys.follow_file()
    assert not keys.file_failed


def test_every_key_is_compared_whichever_is_right(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, compared = ApiKeys(THIRD, file), []
    compare = hmac.compare_digest

    def counted(known: bytes, shown: bytes) -> bool:
        compared.append(known)
        return compare(known, shown)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    assert keys.holds(THIRD.encode())
    assert len(compared) == 3
    assert not any(FIRST.encode() in known for known in compared)


def test_a_key_of_operators_that_is_none_is_told_by_their_setting(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="admin_keys: key 1 is no key"):
        load_keys("secret", None, "admin_keys")
    with pytest.raises(InvalidSetting, match=r"admin_keys_file: cannot read .*absent"):
        load_keys(None, tmp_path / "absent", "admin_keys")
    bad = tmp_path / "bad"
    bad.write_text("secret")
    with pytest.raises(InvalidSetting, match=r"admin_keys_file: .*bad: line 1 is no key"):
        load_keys(None, bad, "admin_keys")


async def test_following_ends_at_once_where_there_is_no_file() -> None:
    await ApiKeys(FIRST, None).keep_following()


class Volume:
    """Holds whoever reads a file of keys on it, as one does whose server is gone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers, self.n_looks = threading.Event(), 0
        self.answers.set()
        read = KeysFile.read

        def held(file: KeysFile, seen: Stamp | None = None) -> Reading | None:
            self.n_looks += 1
            assert self.answers.wait(timeout=30), "the test never let it answer"
            return read(file, seen)

        monkeypatch.setattr(KeysFile, "read", held)


async def test_a_look_that_hangs_is_given_up_told_of_once_and_the_only_one(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    volume = Volume(monkeypatch)
    keys = ApiKeys(None, file, look_timeout_s=0.01)
    volume.answers.clear()
    for _ in range(3):
        await keys.follow_file()
    assert keys.file_failed
    assert keys.holds(FIRST.encode())
    assert volume.n_looks == 2  # the start's, and the one that hangs
    (record,) = caplog.records
    assert vars(record)["reason"].endswith("keys: no answer within 0.01 s")
    (stuck,) = [thread for thread in threading.enumerate() if thread.name == "keys"]
    assert stuck.daemon
    volume.answers.set()
    await asyncio.to_thread(stuck.join, 30)


async def test_a_file_that_answers_again_is_followed_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = Volume(monkeypatch)
    keys = ApiKeys(None, file, look_timeout_s=0.01)
    volume.answers.clear()
    await keys.follow_file()
    put(file, f"{THIRD}\n")
    (stuck,) = [thread for thread in threading.enumerate() if thread.name == "keys"]
    volume.answers.set()
    await asyncio.to_thread(stuck.join, 30)
    await asyncio.sleep(0)  # what it found late is there now, and is not used
    assert keys.holds(FIRST.encode())
    for _ in range(1000):  # a busy machine may take longer than a look may
        if keys.file_failed:
            await keys.follow_file()
    assert not keys.file_failed
    assert not keys.holds(FIRST.encode())
    assert keys.holds(THIRD.encode())


async def test_a_machine_without_a_thread_left_fails_the_look_and_not_the_following(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    keys = ApiKeys(None, file)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", none_left)
        await keys.follow_file()
    assert keys.file_failed
    await keys.follow_file()
    assert not keys.file_failed
