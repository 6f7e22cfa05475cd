"""Rewriting an ONNX graph node by node: what a pass needs to ask and to add."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from model_export.errors import ExportError

CONTRIB_DOMAIN = "com.microsoft"  # where ONNX Runtime's own operators live


class GraphEditor:
    """Reads a graph's old nodes and collects the new ones, in topological order.

    A pass walks `old_nodes`, calls `keep` or `add` for each, and ends with `finish`. Nothing
    changes in the graph before that.
    """

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._producers = {name: node for node in graph.node for name in node.output}
        self._consumers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        for node in graph.node:
            for name in reads(node):
                self._consumers[name].append(node)
        self._new_constants: list[onnx.TensorProto] = []
        self._nodes: list[onnx.NodeProto] = []
        self.old_nodes = list(graph.node)
        self.inputs = {value.name for value in graph.input}
        self.outputs = {value.name for value in graph.output}

    def producer(self, name: str) -> onnx.NodeProto | None:
        """The old node that computes a tensor; None for an input or a constant."""
        return self._producers.get(name)

    def consumers(self, name: str) -> list[onnx.NodeProto]:
        """The old nodes that read a tensor."""
        return self._consumers.get(name, [])

    def value(self, name: str) -> NDArray[Any] | None:
        """A constant's value, whether an initializer or a Constant node; None for all else."""
        if name in self._constants:
            return numpy_helper.to_array(self._constants[name])
        node = self._producers.get(name)
        if node is None or node.op_type != "Constant":
            return None
        held = {attribute.name: attribute for attribute in node.attribute}
        return numpy_helper.to_array(held["value"].t) if "value" in held else None

    def constant_dims(self, name: str) -> tuple[int, ...] | None:
        """An initializer's shape, without reading its value; None for all else."""
        tensor = self._constants.get(name)
        return None if tensor is None else tuple(tensor.dims)

    def constant(self, name: str, value: NDArray[Any] | np.generic) -> str:
        """An initializer of that name, made on the first call.

        Raises:
            ExportError: There is one with another value.
        """
        made = numpy_helper.from_array(np.asarray(value), name)
        held = self._constants.setdefault(name, made)
        if held is not made and not np.array_equal(numpy_helper.to_array(held), value):
            raise ExportError(f"the graph has a constant {name} of its own")
        if held is made:
            self._new_constants.append(made)
        return name

    def has_constant(self, name: str) -> bool:
        """Whether there is an initializer of that name, an old or a new one."""
        return name in self._constants

    def keep(self, node: onnx.NodeProto) -> None:
        """Take an old node over as it is."""
        self._nodes.append(node)

    def add(
        self,
        op_type: str,
        inputs: list[str],
        output: str,
        domain: str = "",
        **attributes: Any,  # noqa: ANN401  # whatever the operator takes
    ) -> str:
        """Add a node with one output; returns the output's name."""
        self._nodes.append(
            helper.make_node(op_type, inputs, [output], output, domain=domain, **attributes)
        )
        return output

    def finish(self) -> None:
        """Put the new nodes in the old ones' place, without those that nothing reads."""
        needed = set(self.outputs)
        alive: list[onnx.NodeProto] = []
        for node in reversed(self._nodes):
            if needed.intersection(node.output):
                alive.append(node)
                needed.update(reads(node))
        del self._graph.node[:]
        self._graph.node.extend(reversed(alive))
        # The large ones that stay are not copied: memory of a deleted one is not given back.
        for index in reversed(range(len(self._graph.initializer))):
            if self._graph.initializer[index].name not in needed:
                del self._graph.initializer[index]
        self._graph.initializer.extend(t for t in self._new_constants if t.name in needed)


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """All tensors that a node needs, those of its branches' nodes too."""
    yield from node.input
    for held in node.attribute:
        for branch in (held.g, *held.graphs):
            for inner in branch.node:
                yield from reads(inner)


def attribute(node: onnx.NodeProto, name: str, default: Any = None) -> Any:  # noqa: ANN401
    """The value of a node's attribute, whatever its type."""
    for held in node.attribute:
        if held.name == name:
            return helper.get_attribute_value(held)
    return default
