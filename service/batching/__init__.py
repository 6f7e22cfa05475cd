"""From waiting pairs to batches. Knows no HTTP, no text and no ONNX."""
