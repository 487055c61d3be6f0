"""A graph in which little has happened yet: Neo4j warns whoever asks it for a name that it does not know."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import neo4j
import pytest

import tracegraph.sync
from tracegraph import embedded
from tracegraph.graph import cypher_folder


def test_it_knows_every_name_that_an_audit_asks_for(
    tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    request.addfinalizer(lambda: embedded.stop(tmp_path))
    server = embedded.start(data=tmp_path, progress=False)
    caplog.set_level(logging.ERROR, "neo4j.notifications")
    asked = [path for folder in ("audit", "browser") for path in (cypher_folder() / folder).glob("*.cypher")]
    with tracegraph.sync.connect(server.bolt_uri, username=server.username, password=server.password):
        pass
    unknown: dict[str, set[str]] = {}
    with neo4j.GraphDatabase.driver(server.bolt_uri, auth=(server.username, server.password)) as driver:
        for path in asked:
            text = path.read_text(encoding="utf-8")
            parameters = dict.fromkeys(re.findall(r"\$(\w+)", text))
            summary = driver.execute_query("EXPLAIN " + text, parameters).summary
            for one in summary.gql_status_objects:
                if "does not exist" in one.status_description:
                    unknown.setdefault(path.name, set()).update(re.findall(r"`(\w+)` does", one.status_description))
    assert len(asked) > 15
    assert unknown == {}
