from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from model_export.__main__ import main as model_export
from service.bulk import command
from service.command_line import OptionParser
from service.settings import load_settings


def serve(argv: Sequence[str]) -> object:
    return load_settings(argv, {})


def score_file(argv: Sequence[str]) -> object:
    return command.main(argv, limit_bytes=1000)


@pytest.mark.parametrize(
    ("run", "arguments", "meant"),
    [
        (serve, "--prot 1", "--port"),
        (serve, "--prot=1 --workrs 2", "--port, --workers"),
        (serve, "--zzzzzz", None),
        (serve, "stray", None),
        (score_file, "--in a --out b --reusme", "--resume"),
        (model_export, "report --bundle x --bundel y", "--bundle"),
        (model_export, "export --out x --toleranse 1", None),
        (score_file, "--inn a --out b", "--in"),
        (score_file, "--out b", None),
        (model_export, "finetune --trian a --dev b --out c", "--train"),
    ],
)
def test_an_option_that_does_not_exist_ends_with_2_and_what_may_have_been_meant(
    run: Callable[[Sequence[str]], object],
    arguments: str,
    meant: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(arguments.split())
    assert ended.value.code == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert "unrecognized arguments: " in told or "arguments are required: " in told
    if meant is None:
        assert "did you mean" not in told
    else:
        assert told.endswith(f"; did you mean {meant}?")


def test_what_exists_is_parsed_as_ever() -> None:
    parser = OptionParser()
    parser.add_argument("--port", type=int)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("go").add_argument("--far", action="store_true")
    parsed = vars(parser.parse_args(["--port", "1", "go", "--far"]))
    assert parsed == {"port": 1, "command": "go", "far": True}
