"""The facts of a model, as written into a bundle's `manifest.json`.

Written by `model_export.write_bundle`, read by `service.scoring.bundle_files`. Fields are added
with a default or with a new `SCHEMA_VERSION`; the loader refuses a version that it does not know.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from service.scoring.calibration import ScoreCalibration
from service.scoring.head import Head

SCHEMA_VERSION: Literal[2] = 2
VERSION_CHARS = 12


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class ModelIdentity(_Record):
    """Which model this is. `version` is derived from the content, so it never lies."""

    name: str = Field(description="As it was named at export.")
    version: str = Field(description="Derived from the content: equal ones give equal scores.")
    architecture: str = Field(description="Class of the checkpoint, in transformers' words.")
    source: str = Field(description="The checkpoint: a folder or a name on the hub.")
    source_sha256: str = Field(description="Of the checkpoint's weights.")


class AdText(_Record):
    """How an ad's fields become text; see `service.scoring.ad_template`."""

    fields: tuple[str, ...] = Field(description="In this order.")
    separator: str = Field(description="Between two fields.")


class Inputs(_Record):
    """What the graph is fed, and how long a pair may be.

    The truncation rule is `service.scoring.encoding.fit_lengths`.
    """

    names: tuple[str, ...] = Field(description="Of the graph's inputs.")
    max_length_tokens: int = Field(ge=8, description="Longest pair, special tokens included.")
    pad_id: int = Field(ge=0, description="Token id of padding.")
    truncation: Literal["ad_end_first"] = Field(
        default="ad_end_first",
        description="The ad's end is cut, down to half of the room; only then the query's.",
    )
    ad_text: AdText = Field(description="How an ad becomes text.")


class Precision(_Record):
    """Number format of the weights, the recipe behind it and where it was checked.

    `target` is what the graph was made for: a CPU's instruction set, or a GPU. `note` says why the
    weights are not what was asked for, where they are not.
    """

    weights: Literal["fp32", "fp16", "int8"] = Field(description="Number format.")
    recipe: str = Field(description="How they were quantized.")
    target: Literal["avx2", "avx512", "vnni", "arm64", "cuda"] = Field(
        description="Instruction set, or cuda, that the graph was made for."
    )
    checked_on: str = Field(description="Machine and execution provider of the export.")
    note: str = Field(default="", description="Why the weights are not what was asked for.")

    @model_validator(mode="after")
    def _numbers_fit_the_target(self) -> Self:
        if (self.weights == "int8" and self.target == "cuda") or (
            self.weights == "fp16" and self.target != "cuda"
        ):
            raise ValueError(f"{self.weights} weights are not for {self.target}")
        return self


class Golden(_Record):
    """Reference pairs: the start-up self-test allows this much difference in logit."""

    n_pairs: int = Field(ge=1, description="How many there are.")
    logit_tolerance: FiniteFloat = Field(gt=0, description="Most difference in a logit.")


class Manifest(_Record):
    """All facts of a bundle. `parity` and `quality` are the figures measured at export."""

    schema_version: Literal[2] = Field(
        default=SCHEMA_VERSION, description="Of the bundle's manifest."
    )
    model: ModelIdentity = Field(description="Which model this is.")
    head: Head = Field(description="What its outputs mean.")
    inputs: Inputs = Field(description="What it is fed.")
    precision: Precision = Field(description="The numbers of its weights.")
    score_calibration: ScoreCalibration = Field(description="From logit to probability.")
    golden: Golden = Field(description="The start-up self-test.")
    parity: dict[str, Any] = Field(
        description="Agreement with the original, as measured at export, and the tolerances."
    )
    quality: dict[str, Any] = Field(description="Figures on labelled pairs, where any were given.")
    score_histogram: tuple[float, ...] = Field(
        min_length=10,
        max_length=10,
        description="Share of reference pairs in each of ten equal bins of the score.",
    )
    tool_versions: dict[str, str] = Field(description="Libraries of the export.")
    files_sha256: dict[str, str] = Field(description="Of each file of the bundle.")

    def content_version(self) -> str:
        """The version of what scores, and the checks before serving, rest on: equal ones agree."""
        scored_by = self.model_dump(mode="json", include={"head", "inputs", "score_calibration"})
        precision, golden = self.precision, self.golden
        checked_by = [precision.weights, precision.target, golden.logit_tolerance]
        return content_version({**scored_by, "checked_by": checked_by}, self.files_sha256)


def content_version(scored_by: Mapping[str, Any], files_sha256: Mapping[str, str]) -> str:
    """A version derived from all that a score depends on, and from nothing else.

    Args:
        scored_by: The manifest's facts that scores, and the checks before serving, rest on.
        files_sha256: Hashes of the bundle's files.
    """
    files = {name: files_sha256.get(name) for name in ("model.onnx", "tokenizer.json")}
    material = json.dumps([scored_by, files], sort_keys=True)
    return hashlib.sha256(material.encode()).hexdigest()[:VERSION_CHARS]
