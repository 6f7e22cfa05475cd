"""The direction of imports is the design; these tests are what keeps it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FOUNDATION = {"service.domain", "service.errors", "service.startup_errors"}
MAY_IMPORT = {
    "service/batching": {*FOUNDATION, "service.clock", "service.batching"},
    "service/scoring": {*FOUNDATION, "service.scoring", "service.pair_seen"},
    "service/caching": {"service.caching"},
    "service/shared_cache/address.py": set(),
    "service/shared_cache/breaker.py": set(),
    "service/shared_cache/commands.py": set(),
    "service/shared_cache/counts.py": set(),
    "service/shared_cache/entry.py": set(),
    "service/shared_cache": {"service.clock", "service.shared_cache"},
    "service/text_tokens.py": {"service.caching"},
    "service/heap.py": set(),
    "service/pair_text.py": {
        "service.domain",
        "service.pair_seen",
        "service.batching",
        "service.caching",
    },
    "service/model_life/history.py": {"service.domain"},
    "service/model_life/reload_on_signal.py": {"service.errors", "service.model_life"},
    "service/model_life": {
        *FOUNDATION,
        "service.clock",
        "service.heap",
        "service.batching",
        "service.caching",
        "service.cost_warm_up",
        "service.model_life",
        "service.scoring",
    },
    "service/shadow": {
        *FOUNDATION,
        "service.batching.planner",
        "service.clock",
        "service.model_life.loaded_model",
        "service.scoring.bundle",
        "service.shadow",
    },
    "service/shadow/policy.py": set(),
    "service/shadow/comparison.py": set(),
    "service/cost_warm_up.py": {"service.batching", "service.scoring"},
    "service/scorer.py": {
        *FOUNDATION,
        "service.clock",
        "service.batching",
        "service.caching",
        "service.pair_seen",
        "service.pair_text",
        "service.pairs_in_flight",
        "service.score_answer",
        "service.shared_cache.shared_scores",
        "service.text_tokens",
    },
    "service/pairs_in_flight.py": {
        *FOUNDATION,
        "service.batching",
        "service.caching.fixed_cache",
        "service.pair_text",
        "service.score_answer",
    },
    "service/score_answer.py": {*FOUNDATION, "service.batching.pair_job"},
    "service/pair_seen.py": set(),
    "service/occlusion.py": {*FOUNDATION, "service.pair_seen"},
    "service/metrics": {
        *FOUNDATION,
        "service.batching.batch",
        "service.caching.fixed_cache",
        "service.shared_cache.breaker",
        "service.shared_cache.counts",
        "service.metrics",
        "service.shadow.comparison",
    },
    "service/connections.py": set(),
    "service/daemon_thread.py": set(),
    "service/log.py": {"service.log_limit", "service.log_writer"},
    "service/log_limit.py": set(),
    "service/log_writer.py": set(),
    "service/loop_lag.py": {"service.clock"},
    "service/request_record.py": {"service.domain"},
    "service/client": {"service.domain", "service.client"},
    "service/api": {
        *FOUNDATION,
        "service.clock",
        "service.daemon_thread",
        "service.log_limit",
        "service.metrics",
        "service.occlusion",
        "service.pair_seen",
        "service.request_record",
        "service.score_answer",
        "service.scorer",
        "service.model_life.history",
        "service.api",
    },
    "service/composition": {
        "service.api.compatible.release",
        "service.api.keys",
        "service.api.recording",
        "service.api.request_log",
        "service.api.state",
        "service.api.tracing",
        "service.batching",
        "service.clock",
        "service.composition",
        "service.cpu",
        "service.heap",
        "service.loop_lag",
        "service.loop_watch",
        "service.metrics",
        "service.model_life",
        "service.scorer",
        "service.scoring",
        "service.settings",
        "service.shadow",
        "service.shared_cache",
        "service.text_tokens",
    },
    "service/bulk": {
        *FOUNDATION,
        "service.api.schemas",  # the same rules, in the same words
        "service.command_line",
        "service.cpu",
        "service.scoring",
        "service.bulk",
    },
    "service/settings.py": {
        "service.command_line",
        "service.settings_given",
        "service.shared_cache.address",
        "service.startup_errors",
    },
    "service/settings_given.py": {"service.startup_errors"},
    "service/command_line.py": set(),
    "service/listening.py": {"service.startup_errors"},
    "service/workers/core_sets.py": {"service.cpu", "service.startup_errors"},
    "service/workers/folder_life.py": {"service.startup_errors", "service.workers.shared_folder"},
    "service/workers/link.py": set(),
    "service/workers/merge_metrics.py": {"service.workers.series"},
    "service/workers/metrics_hub.py": {
        "service.workers.link",
        "service.workers.merge_metrics",
        "service.workers.series",
    },
    "service/workers/restart_policy.py": set(),
    "service/workers/series.py": set(),
    "service/workers/pin.py": {"service.startup_errors"},
    "service/workers/shared_folder.py": {"service.workers.pin"},
    "service/workers/turns.py": set(),
    "service/domain.py": set(),
    "service/errors.py": set(),
    "service/startup_errors.py": set(),
    "service/clock.py": set(),
    "service/cpu.py": set(),
}


def imported_modules(file: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
    return modules


@pytest.mark.parametrize("part", sorted(MAY_IMPORT))
def test_a_part_imports_only_what_lies_below_it(part: str) -> None:
    path = ROOT / part
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    assert files
    for file in files:
        ours = {name for name in imported_modules(file) if name.split(".")[0] == "service"}
        allowed = MAY_IMPORT[part]
        strays = {
            name for name in ours
            if not any(name == base or name.startswith(base + ".") for base in allowed)
        }  # fmt: skip
        assert not strays, f"{file.relative_to(ROOT)} imports {sorted(strays)}"


def test_the_service_never_imports_the_offline_half() -> None:
    for file in sorted((ROOT / "service").rglob("*.py")):
        assert not [name for name in imported_modules(file) if name.startswith("model_export")]


def test_only_one_module_knows_onnxruntime() -> None:
    users = [
        file.name
        for file in sorted((ROOT / "service").rglob("*.py"))
        if "onnxruntime" in imported_modules(file)
    ]
    assert users == ["onnx_model.py"]


def test_importing_the_service_pulls_in_no_training_stack_and_no_extra() -> None:
    code = (
        "import sys, service.app, service.__main__, service.serve\n"
        "banned = ('torch', 'transformers', 'optimum', 'sentence_transformers', 'peft', 'onnx',\n"
        "          'pyarrow', 'ray')\n"
        "print([name for name in banned if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_a_supervisor_holds_none_of_the_libraries_that_score_or_serve() -> None:
    code = (
        "import sys, service.__main__, service.workers.supervisor\n"
        "banned = ('fastapi', 'numpy', 'onnxruntime', 'tokenizers', 'uvicorn', 'uvloop')\n"
        "print([name for name in banned if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


OUR_SETTINGS = {"ORT_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}

# Prints what the environment says when onnxruntime is first looked for, and in the end.
WATCHED_IMPORT = """
import importlib, os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "onnxruntime":
            tell(name)
        return None

def tell(when):
    print(when, os.environ.get("ORT_DISABLE_TELEMETRY"), os.environ.get("TOKENIZERS_PARALLELISM"))

sys.meta_path.insert(0, Watch())
importlib.import_module(sys.argv[1])
tell("end")
"""


def without_our_settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in OUR_SETTINGS}


@pytest.mark.parametrize(
    ("entry", "moments"),
    [
        ("service.serve", ["onnxruntime", "end"]),
        ("service.scoring.onnx_model", ["onnxruntime", "end"]),
        ("service.scoring.encoding", ["end"]),
        ("model_export", ["end"]),
        ("model_export.write_bundle", ["onnxruntime", "end"]),
    ],
)
def test_onnxruntimes_telemetry_is_off_before_it_is_imported(
    entry: str, moments: list[str]
) -> None:
    told = subprocess.run(
        [sys.executable, "-c", WATCHED_IMPORT, entry],
        cwd=ROOT,
        env=without_our_settings(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert told == [f"{moment} 1 false" for moment in moments]


def test_an_operators_own_setting_is_kept() -> None:
    code = "import service.scoring, os; print(os.environ['ORT_DISABLE_TELEMETRY'])"
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**without_our_settings(), "ORT_DISABLE_TELEMETRY": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == "0"
