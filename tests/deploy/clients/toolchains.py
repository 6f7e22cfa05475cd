"""Builds the callers in deploy/clients, each with its language's own tools and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.repository import DEPLOY

CLIENTS = DEPLOY / "clients"
README = CLIENTS / "README.md"
HERE = Path(__file__).parent
BUILD_TIMEOUT_S = 300

GO_FRAME = """package main

import ("context"; "fmt"; "log"; "os"; "time"; "example.com/adrel")

func main() {
%s}
"""
JAVA_FRAME = """import adrel.AdrelClient;
import adrel.AdrelClient.Ad;
import adrel.AdrelClient.Request;
import java.time.Duration;
import java.util.List;

final class Readme {
    private Readme() {}

    public static void main(String[] arguments) throws Exception {
%s    }
}
"""

# As in a container without any: Java 17 reads arguments and writes text by the locale.
PLAIN = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
PLAIN["LC_ALL"] = "C.UTF-8"


@dataclass(frozen=True)
class Built:
    """Commands of one language's programs.

    Attributes:
        example: Scores the README's ads at the URL and within the ms that replace these words.
        example_alone: The same without arguments.
        readme: Runs what the README shows of this language, at the same.
        driver: Makes the calls that its input names.
    """

    example: list[str]
    example_alone: list[str]
    readme: list[str]
    driver: list[str]


def run(command: list[str], cwd: Path, **variables: str) -> str:
    """The standard output of a tool; fails with what it says if it fails or warns."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**PLAIN, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_TIMEOUT_S,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def tool(name: str) -> str:
    """Where a tool is; skips the test where it is not installed."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def shown_program(language: str, frame: str, url: str, ms: str) -> str:
    """A whole program of the README's lines in a language.

    Args:
        language: As its block is marked.
        frame: What is around the lines, which stand for %s.
        url: The expression for the service's address.
        ms: The expression for milliseconds; those shown are too few for a busy machine.
    """
    readme = README.read_text(encoding="utf-8")
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", readme, re.DOTALL)
    [lines] = blocks
    assert lines.count('"http://127.0.0.1:8000"') == lines.count("250") == 1
    return frame % lines.replace('"http://127.0.0.1:8000"', url).replace("250", ms)


def go_variables(folder: Path) -> dict[str, str]:
    """No network, no C compiler, nothing written outside `folder`, no other toolchain fetched."""
    return {
        "GOCACHE": str(folder / "cache"),
        "GOPATH": str(folder / "path"),
        "GOFLAGS": "-mod=mod",
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
        "GOENV": "off",
        "CGO_ENABLED": "0",
    }


def build_go(folder: Path) -> Built:
    """Format, vet and build the module, with the driver as one more program of it."""
    go, gofmt = tool("go"), tool("gofmt")
    variables = go_variables(folder)
    module = folder / "module"
    shutil.copytree(CLIENTS / "go", module)
    (module / "driver").mkdir()
    shutil.copy(HERE / "driver.go", module / "driver" / "main.go")
    assert run([gofmt, "-l", "."], module) == ""
    (module / "readme").mkdir()
    shown = shown_program("go", GO_FRAME, "os.Args[1]", "30_000")
    (module / "readme" / "main.go").write_text(shown, encoding="utf-8")
    run([go, "vet", "./..."], module, **variables)
    out = folder / "bin"
    programs = ["./example", "./readme", "./driver"]
    run([go, "build", "-o", f"{out}{os.sep}", *programs], module, **variables)
    alone = [str(out / "example")]
    example = [*alone, "-url", "URL", "-timeout", "MSms"]
    return Built(example, alone, [str(out / "readme"), "URL"], [str(out / "driver")])


def build_java(folder: Path) -> Built:
    """Compile for Java 17 with every warning an error."""
    java, javac = tool("java"), tool("javac")
    shown = folder / "Readme.java"
    shown.write_text(shown_program("java", JAVA_FRAME, "arguments[0]", "30_000"), encoding="utf-8")
    sources = [*sorted((CLIENTS / "java" / "adrel").glob("*.java")), HERE / "Driver.java", shown]
    strict = ["-Xlint:all", "-Werror", "--release", "17", "-encoding", "UTF-8"]
    run([javac, *strict, "-d", str(folder), *map(str, sources)], folder)
    # Small programs start faster without the second compiler and with one thread to collect.
    start = [java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", str(folder)]
    alone = [*start, "adrel.Example"]
    return Built([*alone, "URL", "MS"], alone, [*start, "Readme", "URL"], [*start, "Driver"])


def build_node(folder: Path) -> Built:
    """Check the syntax; there is nothing to build."""
    node = tool("node")
    module = CLIENTS / "node" / "adrel.mjs"
    example, driver = CLIENTS / "node" / "example.mjs", HERE / "driver.mjs"
    shown = folder / "readme.mjs"
    frame = f'import {{ AdrelClient }} from "{module.as_uri()}";\n%s'
    shown.write_text(shown_program("js", frame, "process.argv[2]", "30_000"), encoding="utf-8")
    for source in (*sorted(module.parent.glob("*.mjs")), driver):
        run([node, "--check", str(source)], folder)
    alone = [node, str(example)]
    return Built(
        [*alone, "URL", "MS"],
        alone,
        [node, str(shown), "URL"],
        [node, str(driver), str(module)],
    )


BUILDERS: Mapping[str, Callable[[Path], Built]] = {
    "go": build_go,
    "java": build_java,
    "node": build_node,
}
