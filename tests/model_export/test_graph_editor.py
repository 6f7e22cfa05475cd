from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from model_export.errors import ExportError
from model_export.graph_editor import GraphEditor, attribute, reads


def value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


def chain() -> onnx.GraphProto:
    """y = relu(x) + c, and a node whose result nobody reads."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Add", ["r", "c"], ["y"]),
        helper.make_node("Mul", ["r", "unread"], ["dead"]),
    ]
    constants = [
        numpy_helper.from_array(np.array([1, 2], dtype=np.float32), "c"),
        numpy_helper.from_array(np.array([3], dtype=np.float32), "unread"),
    ]
    return helper.make_graph(nodes, "chain", [value("x")], [value("y")], constants)


def test_nodes_and_constants_that_nothing_reads_are_left_out() -> None:
    graph = chain()
    editor = GraphEditor(graph)
    for node in editor.old_nodes:
        editor.keep(node)
    editor.finish()
    assert [node.op_type for node in graph.node] == ["Relu", "Add"]
    assert [tensor.name for tensor in graph.initializer] == ["c"]


def test_nothing_changes_before_the_end() -> None:
    graph = chain()
    before = graph.SerializeToString()
    editor = GraphEditor(graph)
    editor.add("Neg", ["x"], "y")
    editor.constant("d", np.float32(9))
    assert graph.SerializeToString() == before
    editor.finish()
    assert [node.op_type for node in graph.node] == ["Neg"]


def test_a_constant_is_made_once() -> None:
    graph = chain()
    editor = GraphEditor(graph)
    assert editor.constant("two", np.int64(2)) == editor.constant("two", np.int64(2)) == "two"
    editor.add("Add", ["x", "two"], "y")
    editor.finish()
    assert [tensor.name for tensor in graph.initializer] == ["two"]


def test_a_name_that_the_graph_has_for_something_else_is_refused() -> None:
    editor = GraphEditor(chain())
    assert editor.constant("c", np.array([1, 2], dtype=np.float32)) == "c"
    with pytest.raises(ExportError, match="constant c of its own"):
        editor.constant("c", np.float32(9))


def test_values_come_from_initializers_and_constant_nodes() -> None:
    graph = chain()
    held = numpy_helper.from_array(np.array([7]))
    graph.node.insert(0, helper.make_node("Constant", [], ["k"], value=held))
    graph.node.insert(0, helper.make_node("Constant", [], ["number"], value_float=7.0))
    editor = GraphEditor(graph)
    for name, expected in (("c", [1, 2]), ("k", [7])):
        found = editor.value(name)
        assert found is not None
        assert found.tolist() == expected
    assert editor.value("r") is None
    assert editor.value("number") is None, "not a tensor: nobody asked for these yet"
    assert editor.constant_dims("c") == (2,)
    assert editor.constant_dims("k") is None


def test_readers_and_producers_are_those_of_the_old_graph() -> None:
    editor = GraphEditor(chain())
    assert [node.op_type for node in editor.consumers("r")] == ["Add", "Mul"]
    assert editor.consumers("y") == []
    producer = editor.producer("r")
    assert producer is not None
    assert producer.op_type == "Relu"
    assert editor.producer("x") is None


def test_what_a_branch_reads_counts() -> None:
    inner = helper.make_graph([helper.make_node("Neg", ["r"], ["n"])], "b", [], [value("n")])
    branch = helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)
    assert set(reads(branch)) == {"x", "r"}
    graph = chain()
    del graph.node[1:]
    graph.node.append(branch)
    editor = GraphEditor(graph)
    assert editor.consumers("r") != []
    for node in editor.old_nodes:
        editor.keep(node)
    editor.finish()
    assert [node.op_type for node in graph.node] == ["Relu", "If"]


def test_attributes_have_a_default() -> None:
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=1)
    assert attribute(node, "axis") == 1
    assert attribute(node, "other", 5) == 5
