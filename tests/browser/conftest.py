"""A real Chromium, driven as a person would use it, and the travel case to look at."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

import tracegraph
from tracegraph.scenarios import forget

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

# Quiet, and with no name but this machine's: what a page asks of the network fails at once.
FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-component-update",
    "--disable-background-networking",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--window-size=1400,1000",
)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    if not (CHROMIUM and DRIVER):
        pytest.skip("no Chromium with its driver here: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(DRIVER))
    browser.execute_cdp_cmd(
        "Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    )
    yield browser
    browser.quit()


@dataclass
class Travel:
    workspace: str
    blocked: str
    """The first return's id."""
    admitted: str


def cli(*words: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from tracegraph.cli import main; main()", *words]
    return subprocess.run(  # noqa: S603
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="session")
async def travel(graph: tracegraph.Graph, neo4j: dict[str, str]) -> AsyncIterator[Travel]:
    """The paper's travel case, as `tracegraph demo` plays it."""
    played = await anyio.to_thread.run_sync(lambda: cli("demo", "--json", environment=neo4j))
    assert played.returncode == 0, played.stderr
    told: dict[str, Any] = json.loads(played.stdout)
    yield Travel(told["workspace"], told["blocked"]["cycle_id"], told["admitted"]["cycle_id"])
    await forget(graph, told["workspace"])


@pytest.fixture
def shots() -> Path | None:
    """Where to keep what was seen: TRACEGRAPH_SCREENSHOTS, for a person to look at."""
    folder = os.environ.get("TRACEGRAPH_SCREENSHOTS")
    return Path(folder) if folder else None
