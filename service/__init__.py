"""Online half: loads a bundle and scores ads over HTTP. Imports no training stack."""

import os

# ONNX Runtime's Linux wheels report to their maker since 1.29. What users search for is nobody's
# business; this must be set before the first import of onnxruntime, hence here.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
