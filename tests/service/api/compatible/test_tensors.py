from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.compatible.tensors import TensorIn, input_texts, output_body, split_body
from service.errors import InvalidRequest


def packed(*elements: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(element)) + element for element in elements)


def tensor(name: str = "ad", **fields: object) -> TensorIn:
    return TensorIn.model_validate({"name": name, "shape": [1], "datatype": "BYTES", **fields})


def in_bytes(name: str, size: object, n_elements: int = 1) -> TensorIn:
    return tensor(name, shape=[n_elements], parameters={"binary_data_size": size})


def test_tensors_that_are_not_used_may_be_of_any_type_and_shape() -> None:
    tail = b"\x00\x01\x02\x03" + packed(b"shoe")
    mask = tensor("mask", datatype="BOOL", shape=[1, 2, 2], parameters={"binary_data_size": 4})
    flags = tensor("flags", datatype="INT32", shape=[2, 1, 1], data=[1, 2])
    tensors = [mask, flags, in_bytes("ad", len(tail) - 4)]
    assert input_texts(tensors, memoryview(tail), ["ad"]) == {"ad": ["shoe"]}


@given(
    st.lists(st.text(), max_size=5), st.lists(st.text(), max_size=5), st.booleans(), st.booleans()
)
def test_texts_arrive_as_they_were_sent_in_json_and_in_bytes(
    first: list[str], second: list[str], first_in_bytes: bool, second_in_bytes: bool
) -> None:
    tensors, tail = [], b""
    for name, texts, as_bytes in (("b", first, first_in_bytes), ("a", second, second_in_bytes)):
        if as_bytes:
            content = packed(*(text.encode() for text in texts))
            tensors.append(in_bytes(name, len(content), len(texts)))
            tail += content
        else:
            tensors.append(tensor(name, shape=[len(texts), 1], data=[[text] for text in texts]))
    assert input_texts(tensors, memoryview(tail), ("a", "b")) == {"a": second, "b": first}


@pytest.mark.parametrize(
    ("wrong", "tail", "message"),
    [
        (in_bytes("ad", 6), packed(b"xy")[:5], "must be a number of bytes that follow"),
        (in_bytes("ad", -1), b"", "must be a number of bytes that follow"),
        (in_bytes("ad", True), b"x", "must be a number of bytes that follow"),
        (in_bytes("ad", "6"), packed(b"xy"), "must be a number of bytes that follow"),
        (in_bytes("ad", 3), b"xyz", "end within the length of an element"),
        (in_bytes("ad", 5), struct.pack("<I", 9) + b"x", "element 0 is longer than the bytes"),
        (in_bytes("ad", 5), packed(b"\xff"), "element 0 is not UTF-8"),
        (in_bytes("ad", 5, 2), packed(b"x"), "does not fit the data of 1 elements"),
        (in_bytes("ad", 5, 10**18), packed(b"x"), "does not fit the data of 1 elements"),
        (in_bytes("ad", 5), packed(b"x") + b"!", "1 bytes after the JSON belong to no input"),
        (tensor(data=["x"], shape=[-1, -1]), b"", r"shape must be \[n\]"),
        (tensor(data=["x", "y"], shape=[1, 2]), b"", r"shape must be \[n\]"),
        (tensor(data=[[["x"]]]), b"", r"data\[0\] must be a string"),
        (tensor(data=[7]), b"", r"data\[0\] must be a string"),
        (tensor(), b"", "does not fit the data of 0 elements"),
        (tensor(data=[1.5], datatype="FP32"), b"", "datatype must be BYTES, got 'FP32'"),
        (tensor(parameters={"shared_memory_region": "r"}), b"", "shared memory is not there"),
    ],
)
def test_a_tensor_that_cannot_be_read_is_refused(
    wrong: TensorIn, tail: bytes, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        input_texts([wrong], memoryview(tail), [wrong.name])


@pytest.mark.parametrize(
    ("header", "head", "tail"), [(None, b"{}abc", b""), ("2", b"{}", b"abc"), ("5", b"{}abc", b"")]
)
def test_the_header_says_where_the_json_ends(header: str | None, head: bytes, tail: bytes) -> None:
    json_part, rest = split_body(b"{}abc", header)
    assert (json_part, bytes(rest)) == (head, tail)


@pytest.mark.parametrize("header", ["", "-1", "6", "2.0", "two", "٢", "9" * 5000])
def test_a_header_that_cannot_be_right_is_refused(header: str) -> None:
    with pytest.raises(InvalidRequest, match="Inference-Header-Content-Length"):
        split_body(b"{}abc", header)


def test_outputs_go_as_json_with_all_digits_or_as_bytes() -> None:
    outputs = [("score", [0.1, 0.25], True), ("logit", [1 / 3, 2.0], False)]
    body, json_bytes = output_body({"id": "7"}, outputs, [2, 1])
    assert json_bytes is not None
    score, logit = json.loads(body[:json_bytes])["outputs"]
    assert score == {
        "name": "score",
        "datatype": "FP32",
        "shape": [2, 1],
        "parameters": {"binary_data_size": 8},
    }
    assert struct.unpack("<2f", body[json_bytes:]) == pytest.approx([0.1, 0.25])
    assert logit["data"] == [1 / 3, 2.0]
    assert output_body({}, outputs[1:], [2])[1] is None
