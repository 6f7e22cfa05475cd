"""The one door to pyarrow, which only Parquet needs and serving never installs."""

from __future__ import annotations

from typing import Any

from service.bulk.errors import ExtraMissing


def pyarrow() -> Any:  # noqa: ANN401  # a module of an extra that may be absent
    """The library, with its Parquet half imported.

    Raises:
        ExtraMissing: It is not installed.
    """
    try:
        import pyarrow as library  # noqa: PLC0415  # an extra
        import pyarrow.parquet  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ExtraMissing from error
    return library
