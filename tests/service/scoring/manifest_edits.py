from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def edit_manifest(bundle: Path, change: Callable[[dict[str, Any]], None]) -> None:
    file = bundle / "manifest.json"
    fields = json.loads(file.read_text(encoding="utf-8"))
    change(fields)
    file.write_text(json.dumps(fields), encoding="utf-8")
