# Two commands for a start: `make demo` and `make test`. Everything goes into .venv; versions are in constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
SLOW := tests/faults tests/browser tests/embedded/test_backup.py tests/embedded/test_young_graph.py

.PHONY: demo test test-slow test-lts test-docker lint types wheel bench clean

demo: .venv/ready
	$(BIN)/tracegraph demo

test: .venv/ready
	$(BIN)/python -m pytest $(addprefix --ignore=,$(SLOW))

# Killed and paused servers, a full disk, crowds, rebuilt stores, and a real browser: minutes more.
test-slow: .venv/ready
	TRACEGRAPH_SLOW=1 $(BIN)/python -m pytest $(SLOW)

# A short suite on the LTS line; the whole one runs on the default release.
test-lts: .venv/ready
	$(BIN)/python -m pytest --neo4j-version 5.26 tests/graph/test_audit.py tests/graph/test_plans.py \
	  tests/scenarios/test_shared.py tests/invalidation/test_travel.py

# The graph's tests on the official image, or on the one that TRACEGRAPH_NEO4J_IMAGE names. Fails without an engine.
test-docker: .venv/ready
	TRACEGRAPH_REQUIRE_DOCKER=1 $(BIN)/python -m pytest --neo4j docker tests/docker tests/graph \
	  tests/scenarios/test_shared.py

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

wheel: .venv/ready
	$(BIN)/python -m build --wheel --outdir dist

bench: .venv/ready
	$(BIN)/python benchmarks/speed.py $(BENCH)

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv dist build
