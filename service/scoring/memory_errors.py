"""Which of the runtime's errors mean that memory did not suffice.

ONNX Runtime has no type or code for it (microsoft/onnxruntime#16307): the words are all there is.
"""

from __future__ import annotations

SIGNS = (
    # onnxruntime/core/framework/bfc_arena.cc: the arenas of CPU and CUDA. Seen with 1.32 under
    # a limited address space, as FAIL.
    "Failed to allocate memory for requested buffer",
    "Failed to find a free memory block",
    # sequential_executor.cc passes on what() of a kernel's exception: GCC's and MSVC's words.
    "std::bad_alloc",
    "bad allocation",
    # onnxruntime/core/providers/cuda/cuda_call.cc: cudaGetErrorString(cudaErrorMemoryAllocation),
    # cuBLAS's and cuDNN's own names.
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether fewer pairs at a time might have succeeded.

    Args:
        error: Of ONNX Runtime, or of Python's own while a batch was made ready.
    """
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in SIGNS)
