from __future__ import annotations

import os
from pathlib import Path

import pytest

from service.api.keys_file import MAX_FILE_BYTES, KeysFile
from service.startup_errors import InvalidSetting

FIRST, SECOND = "first-key-0123456789", "other-key-0123456789"


def test_a_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path) -> None:
    def refused(path: Path, why: str) -> None:
        with pytest.raises(InvalidSetting, match=f"api_keys_file: .*{path.name}{why}"):
            KeysFile(path, "api_keys_file").read()

    refused(tmp_path / "absent", ": No such file")
    empty, large = tmp_path / "empty", tmp_path / "large"
    empty.write_text("# nothing yet\n")
    refused(empty, ": has no key")
    large.write_text("#" * (MAX_FILE_BYTES + 1))
    refused(large, " is over 1048576 bytes")


def test_only_a_regular_file_is_read_and_nothing_is_waited_for_or_left_open(
    tmp_path: Path,
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    n_open = len(os.listdir("/dev/fd"))  # noqa: PTH208  # a folder of what is open, not of files
    for path in (pipe, tmp_path, Path("/dev/null")):
        with pytest.raises(InvalidSetting, match=f"cannot read {path}: it is not a regular file"):
            KeysFile(path, "api_keys_file").read()
    assert len(os.listdir("/dev/fd")) == n_open  # noqa: PTH208  # likewise


def test_a_file_that_is_as_it_was_seen_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(FIRST)
    file = KeysFile(path, "api_keys_file")
    first = file.read()
    assert first is not None
    assert file.read(first.stamp) is None
    path.write_text(SECOND)
    assert file.read(first.stamp) not in (None, first)


def test_other_keys_with_the_same_size_and_the_old_time_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(FIRST)
    file, before = KeysFile(path, "api_keys_file"), path.stat()
    first = file.read()
    assert first is not None
    path.write_text(SECOND)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = file.read(first.stamp)
    assert second is not None
    assert second.digests != first.digests


def test_a_file_that_may_not_be_read_any_more_is_told_of_though_it_is_as_it_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys"
    path.write_text(FIRST)
    file = KeysFile(path, "api_keys_file")
    first = file.read()
    assert first is not None

    def denied(*_: object) -> int:  # as for anyone but root
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(InvalidSetting, match=r"cannot read .*keys: Permission denied"):
        file.read(first.stamp)


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(FIRST, encoding="utf-8")
    plain = KeysFile(path, "api_keys_file").read()
    path.write_text(FIRST, encoding="utf-8-sig")
    marked = KeysFile(path, "api_keys_file").read()
    assert plain is not None
    assert marked is not None
    assert marked.digests == plain.digests
