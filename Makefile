# Two commands for a start: `make demo` and `make test`. Everything goes into .venv; versions are in constraints.txt.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint types wheel bench clean

demo: .venv/ready
	$(BIN)/tracegraph demo

test: .venv/ready
	$(BIN)/python -m pytest

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
