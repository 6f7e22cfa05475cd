"""What `GET /v1/model` tells: the facts of the bundle, and how it is served here."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from service.scoring.manifest import Manifest


class ServedModel(Manifest):
    """Every fact of the model that serves."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "schema_version": 2,
                    "model": {
                        "name": "adrel-minilm-l6",
                        "version": "07a79ee3df85",
                        "architecture": "BertForSequenceClassification",
                        "source": "sentence-transformers/all-MiniLM-L6-v2 with adapter",
                        "source_sha256": "e4d2bbe35866…",
                    },
                    "head": {"kind": "binary", "n_logits": 1, "relevant_index": 0, "grades": []},
                    "inputs": {
                        "names": ["input_ids", "attention_mask", "token_type_ids"],
                        "max_length_tokens": 64,
                        "pad_id": 0,
                        "truncation": "ad_end_first",
                        "ad_text": {"fields": ["title", "description"], "separator": " "},
                    },
                    "precision": {
                        "weights": "int8",
                        "recipe": "rowwise-dynamic-u8s7",
                        "target": "avx2",
                        "checked_on": "x86_64 CPU (avx2), CPUExecutionProvider",
                        "note": "",
                    },
                    "score_calibration": {
                        "fitted_on": "dev.jsonl",
                        "method": "platt",
                        "slope": 0.9975,
                        "intercept": -0.5696,
                    },
                    "golden": {"n_pairs": 32, "logit_tolerance": 0.2},
                    "parity": {"int8": {"mean_score": 0.0084, "batch_spread": 0.0}},
                    "quality": {},
                    "score_histogram": [0.24, 0.13, 0.11, 0.06, 0.09, 0.07, 0.06, 0.08, 0.15, 0.01],
                    "tool_versions": {"onnxruntime": "1.32.0"},
                    "files_sha256": {"model.onnx": "e62ea7a6d3cd…"},
                    "provider": "cpu",
                    "inference_threads": 2,
                    "max_batch_pairs": 32,
                    "max_batch_tokens": 512,
                }
            ]
        }
    )

    # A `const` that is a number makes generators of clients write code that does not parse.
    schema_version: Annotated[
        Literal[2], WithJsonSchema({"type": "integer", "minimum": 2, "maximum": 2})
    ] = Field(description="Of the bundle's manifest.")
    provider: Literal["cpu", "cuda"] = Field(description="ONNX Runtime execution provider.")
    inference_threads: int = Field(ge=1, description="Batches that run at once.")
    max_batch_pairs: int = Field(ge=1, description="Most pairs in a batch.")
    max_batch_tokens: int = Field(ge=1, description="Most padded tokens in a batch.")
