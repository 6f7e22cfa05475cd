"""The rules of `deploy/prometheus/rules` as the resource that the Prometheus operator takes.

    .venv/bin/python -m deploy.kubernetes.prometheus_rule

writes it anew after a change of the rules. A test holds the file to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parents[1]
RULES = DEPLOY / "prometheus" / "rules"
WRITTEN = DEPLOY / "kubernetes" / "components" / "monitoring" / "prometheus_rule.yaml"
HEAD = "# Written by `python -m deploy.kubernetes.prometheus_rule`; change the rules there.\n"


def main() -> None:
    """Write the file."""
    WRITTEN.write_text(prometheus_rule(), encoding="utf-8")


def prometheus_rule() -> str:
    """The file's text. Of one resource's groups no two may have a name, so each gets its file's."""
    groups = [
        {**group, "name": f"{group['name']}_{path.stem}"}
        for path in sorted(RULES.glob("*.yml"))
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
    ]
    return HEAD + yaml.dump(_resource(groups), Dumper=_Readable, sort_keys=False, width=100)


class _Readable(yaml.SafeDumper):
    """Leaves lines of PromQL as they are."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """A text of several lines as a block."""
        style = "|" if "\n" in text else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Readable.add_representer(str, _Readable.represent_text)


def _resource(groups: list[dict[str, Any]]) -> Mapping[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "adrel", "labels": {"app.kubernetes.io/name": "adrel"}},
        "spec": {"groups": groups},
    }


if __name__ == "__main__":
    main()
