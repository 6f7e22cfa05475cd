from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from service.scoring.memory_errors import is_out_of_memory
from tests.service.test_imports import ROOT


@pytest.mark.parametrize(
    "text",
    [
        "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Gather node. "
        "Status Message: bfc_arena.cc:360 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, "
        "bool, onnxruntime::Stream*) Failed to allocate memory for requested buffer of size 402653",
        "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running "
        "MatMul node. Name:'m' Status Message: std::bad_alloc",
        "Non-zero status code returned while running FusedMatMul node. Status Message: bad "
        "allocation",
        "CUDA failure 2: out of memory ; GPU=0 ; hostname=h ; expr=cudaMalloc((void**)&p, size);",
        "CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; hostname=h ; expr=cublasCreate",
    ],
)
def test_every_way_in_which_memory_runs_out_is_known(text: str) -> None:
    assert is_out_of_memory(RuntimeError(text))


def test_pythons_own_error_is_known_without_words() -> None:
    assert is_out_of_memory(MemoryError())


@pytest.mark.parametrize(
    "text",
    [
        "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Got invalid dimensions for input: input_ids",
        "CUDA failure 700: an illegal memory access was encountered ; GPU=0",
        "CUDA failure 100: no CUDA-capable device is detected",
    ],
)
def test_other_faults_are_none_of_them(text: str) -> None:
    assert not is_out_of_memory(RuntimeError(text))


SHORT_OF_MEMORY = """
import pathlib, resource, sys
import numpy as np
from service.errors import OutOfMemory
from service.scoring.bundle import open_bundle
from service.scoring.encoding import EncodedPair

model = open_bundle(pathlib.Path(sys.argv[1])).model
ids = np.zeros(64, np.int32)
pairs = [EncodedPair(ids, ids, truncated=False)] * 20_000
model.logits(pairs[:8])
feed = model._feed(pairs)
held = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + 2**26,) * 2)
model._feed = lambda _: feed
try:
    model.logits(pairs)
except OutOfMemory as error:
    print("out of memory:", error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space by Linux's means")
def test_a_runtime_that_really_is_short_of_memory_says_what_we_know(tiny_bundle_fp32: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SHORT_OF_MEMORY, str(tiny_bundle_fp32)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "out of memory: onnxruntime failed on 20000 pairs" in ended.stdout, ended.stderr
