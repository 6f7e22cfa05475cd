"""Offline half: from a checkpoint to a bundle that proves itself."""

import service.scoring  # noqa: F401  # before onnxruntime: it turns that library's telemetry off
