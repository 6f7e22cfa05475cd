"""A real service whose inference can be broken, and mended, while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.end_to_end.running_service import RunningService, running


@dataclass
class Faulty:
    """A service that can be broken from here."""

    service: RunningService
    file: Path

    def break_it(self, fault: str) -> None:
        made = self.file.with_suffix(".new")
        made.write_text(fault)
        made.rename(self.file)  # in one step: a run may look at any time

    def mend(self) -> None:
        self.file.unlink(missing_ok=True)

    def ask(self, text: str = "shoe", **fields: float | str) -> httpx.Response:
        return self.service.score({"query": "red", "ads": [{"id": "ad", "text": text}], **fields})

    def code(self, text: str = "shoe", **fields: float | str) -> str:
        """The status of the answer, or the code of its error."""
        answer = self.ask(text, **fields).json()
        return str(answer["error"]["code"] if "error" in answer else answer["scores"][0]["status"])

    def status(self, path: str) -> int:
        return self.service.client.get(path).status_code

    def messages(self) -> list[str]:
        return [entry["message"] for entry in self.service.log]


@contextmanager
def faulty(bundle: Path, folder: Path, *arguments: str) -> Iterator[Faulty]:
    """Serve without a cache; `folder` holds the file of faults."""
    file = folder / "fault"
    program = ("deploy.faults.faulty_service", "--fault-file", str(file))
    with running(bundle, "--cache-bytes", "0", *arguments, program=program) as service:
        broken = Faulty(service, file)
        try:
            yield broken
        finally:
            broken.mend()


@contextmanager
def held(bundle: Path, folder: Path, *arguments: str) -> Iterator[Faulty]:
    """One inference thread, at a run that ends when it is mended: what waits behind it waits."""
    patient = ("--inference-threads", "1", "--watchdog-s", "60")
    with faulty(bundle, folder, *patient, *arguments) as service:
        service.break_it("hang")
        yield service
