"""Builds the callers in deploy/clients, each with its language's own tools and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.repository import DEPLOY

CLIENTS = DEPLOY / "clients"
HERE = Path(__file__).parent
BUILD_TIMEOUT_S = 300

# As in a container without any: Java 17 reads arguments and writes text by the locale.
PLAIN = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
PLAIN["LC_ALL"] = "C.UTF-8"


@dataclass(frozen=True)
class Built:
    """Commands of one language's programs.

    Attributes:
        example: Scores the README's ads; takes the service's URL.
        driver: Makes the calls that its input names.
    """

    example: list[str]
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
    run([go, "vet", "./..."], module, **variables)
    out = folder / "bin"
    run([go, "build", "-o", f"{out}{os.sep}", "./example", "./driver"], module, **variables)
    return Built([str(out / "example")], [str(out / "driver")])


def build_java(folder: Path) -> Built:
    """Compile for Java 17 with every warning an error."""
    java, javac = tool("java"), tool("javac")
    sources = [*sorted((CLIENTS / "java" / "adrel").glob("*.java")), HERE / "Driver.java"]
    strict = ["-Xlint:all", "-Werror", "--release", "17", "-encoding", "UTF-8"]
    run([javac, *strict, "-d", str(folder), *map(str, sources)], folder)
    # Small programs start faster without the second compiler and with one thread to collect.
    start = [java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", str(folder)]
    return Built([*start, "adrel.Example"], [*start, "Driver"])


def build_node(folder: Path) -> Built:
    """Check the syntax; there is nothing to build."""
    node = tool("node")
    module = CLIENTS / "node" / "adrel.mjs"
    for source in (module, CLIENTS / "node" / "example.mjs", HERE / "driver.mjs"):
        run([node, "--check", str(source)], folder)
    example = [node, str(CLIENTS / "node" / "example.mjs")]
    return Built(example, [node, str(HERE / "driver.mjs"), str(module)])


BUILDERS: Mapping[str, Callable[[Path], Built]] = {
    "go": build_go,
    "java": build_java,
    "node": build_node,
}
