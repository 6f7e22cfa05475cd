from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.shared_cache.commands import Answer, Refusal
from service.shared_cache.resp import MAX_ANSWER_BYTES, AnswerReader, NotRedis, packed

strings = st.one_of(st.none(), st.binary(max_size=20))
answers = st.lists(st.one_of(strings, st.lists(strings, max_size=5)), max_size=5)


def wire(answer: Answer) -> bytes:
    """As a server says it."""
    if answer is None:
        return b"$-1\r\n"
    if isinstance(answer, list):
        return b"*%d\r\n" % len(answer) + b"".join(map(wire, answer))
    assert isinstance(answer, bytes)
    return b"$%d\r\n%b\r\n" % (len(answer), answer)


def read(*pieces: bytes) -> list[Answer]:
    reader = AnswerReader()
    return [answer for piece in pieces for answer in reader.feed(piece)]


@given(answers, st.data())
def test_answers_are_the_same_however_they_are_cut(said: list[Answer], data: st.DataObject) -> None:
    content = b"".join(map(wire, said))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=8)))
    pieces = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    assert read(*pieces) == said


@given(answers.filter(bool), st.data())
def test_half_an_answer_is_none(said: list[Answer], data: st.DataObject) -> None:
    content = b"".join(map(wire, said))
    last = len(wire(said[-1]))
    assert read(content[: len(content) - data.draw(st.integers(1, last))]) == said[:-1]


def test_short_answers_are_their_lines() -> None:
    assert read(b"+OK\r\n:12\r\n*-1\r\n*0\r\n+\r\n") == [b"OK", b"12", None, [], b""]


def test_a_refusal_stands_among_answers() -> None:
    [refused, taken] = read(b"-ERR no\r\n*2\r\n+OK\r\n-ERR no\r\n")
    assert isinstance(refused, Refusal)
    assert refused.word == "ERR"
    assert isinstance(taken, list)
    assert [type(item) for item in taken] == [bytes, Refusal]


@pytest.mark.parametrize(
    "nonsense",
    [b"HTTP/1.1 400", b"\x00", b"*2147483647\r\n", b"*-2\r\n", b"*\r\n", b"*1x\r\n", b"$1_0\r\n",
     b"$ 1\r\n", b"$+1\r\n", b"$-\r\n", b"$9999999999999999", b"$2000000\r\n", b"$2\r\nabcd",
     b"*1\r\n*1\r\n+a\r\n", b"*1\r\n%1\r\n", b",1.5\r\n", b"\r\n"],
)  # fmt: skip
def test_what_redis_never_answers_is_refused_before_it_costs_anything(nonsense: bytes) -> None:
    with pytest.raises(NotRedis):
        read(nonsense)


@pytest.mark.parametrize("beginning", [b"+", b"-", b"*2\r\n$9\r\n123456789\r\n$1048576\r\n"])
def test_an_answer_without_end_is_refused(beginning: bytes) -> None:
    with pytest.raises(NotRedis, match="an answer is too long"):
        read(beginning, *[b"x" * (MAX_ANSWER_BYTES // 16)] * 16)


@given(st.binary(max_size=60))
def test_whatever_comes_is_an_answer_or_refused(content: bytes) -> None:
    try:
        read(content)
    except NotRedis:
        return


@given(st.lists(st.lists(st.binary(max_size=20), min_size=1), max_size=4))
def test_commands_are_packed_as_arrays_of_strings(commands: list[list[bytes]]) -> None:
    assert read(packed([tuple(command) for command in commands])) == commands
