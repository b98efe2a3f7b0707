# Everything a contributor runs. `make setup` once, then `make check test`.
# The tools come from .venv in the checkout; another interpreter: make PY=/path/to/python check

VENV ?= .venv
PY ?= $(VENV)/bin/python
BOOTSTRAP ?= python3
SOURCES = compiler explorer views sample_models tests
MODEL ?= sample_models/mlp/model.mlir
SECONDS ?= 60
# import-linter has no `python -m` of its own.
LINT_IMPORTS = $(PY) -c "from importlinter.cli import lint_imports_command; lint_imports_command()"

.PHONY: help setup check format lint types imports lengths test run golden fuzz bench

help:
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/:/'

setup: ## a virtual environment with everything development needs
	$(BOOTSTRAP) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --editable '.[dev]'

check: format lint types imports lengths ## all that needs no test run

format: ## formatting, told and not mended: `ruff format` mends it
	$(PY) -m ruff format --check $(SOURCES)

lint: ## ruff's rules
	$(PY) -m ruff check $(SOURCES)

types: ## mypy, strict
	$(PY) -m mypy

imports: ## the direction of imports
	$(LINT_IMPORTS)

lengths: ## no file longer than 400 lines but those listed
	$(PY) tests/file_lengths.py

test: ## the tests
	$(PY) -m pytest -q

run: ## the explorer on a sample model, or on MODEL=...
	$(PY) -m views.main $(MODEL)

golden: ## writes the golden files anew; look at the difference before you commit it
	$(PY) -m pytest -q tests/views/tui --update-golden

fuzz: ## generated programs against the reference interpreter, for SECONDS=60
	XLA_EXPLORE_FUZZ_SECONDS=$(SECONDS) $(PY) -m pytest -q tests/fuzz

bench: ## the tests that measure speed
	$(PY) -m pytest -q -s -m bench tests/bench
