# Every target does its own set-up: Python 3.11 or newer and make are all that a fresh machine needs.
# A particular Python: make test PYTHON=python3.12

VENV ?= .venv
DEMO_VENV ?= .venv-demo
JOBS ?= 2
PYTHON ?=
AXE := axe-playwright-python==0.1.8

BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := $(DEMO_VENV)/bin
DEMO_READY := $(DEMO_VENV)/.ready
DOCS_READY := $(VENV)/.docs
SITE := build/site
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint types bench docs others clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(DEMO_READY) ## fair and private models of made-up people, as a report to look at, and a check of its privacy statements
	$(DEMO)/fairveil demo
	$(DEMO)/fairveil verify demo/statement.json --json
	$(DEMO)/fairveil verify demo/all_models.json --json

test: $(READY) lint types ## lint, types, tests, doctests and the examples in the documents
	$(BIN)/pytest -n $(JOBS) --dist loadfile --doctest-modules src/fairveil tests

lint: $(READY) ## ruff, both as linter and as formatter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy, strict
	$(BIN)/mypy

bench: $(READY) ## every benchmark, one after another
	@set -e; for file in $$(grep -l __main__ benchmarks/*.py); do echo "== $$file"; $(BIN)/python "$$file"; done

# The site is built from this folder and the installed packages alone: nothing is fetched. Warnings are errors.
docs: $(DOCS_READY) ## the site, in build/site/index.html
	$(BIN)/python docs/site/build.py $(SITE)

# MLflow is 850 MB, and does not import beside the pinned packages.
others: ## tests against MLflow, in an environment of its own
	$(call beside,mlflow,"mlflow>=3.1" skops,tests/export/test_mlflow.py)

# $(1): the name of the environment; $(2): what is installed in it; $(3): the tests that need it.
define beside
@$(call with_python,build/others/$(1))
build/others/$(1)/bin/python -m pip install --quiet $(2) pytest pytest-xdist hypothesis -e .
build/others/$(1)/bin/python -m pytest -q -rs $(3)
endef

clean: ## remove the virtual environment and everything that tools leave behind
	rm -rf $(VENV) $(DEMO_VENV) build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# $(1): the environment to make. The first Python found that is new enough makes it.
define with_python
set -e; found=; \
for python in $(if $(PYTHON),"$(PYTHON)",python3 python3.14 python3.13 python3.12 python3.11 python); do \
  if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
    found=$$python; break; fi; \
done; \
if [ -z "$$found" ]; then \
  echo "No Python 3.11 or newer that can make virtual environments$(if $(PYTHON), at $(PYTHON))." >&2; \
  echo "Install one (on Debian: apt install python3 python3-venv), or name it: make $(or $(MAKECMDGOALS),test) PYTHON=/path/to/python3" >&2; \
  exit 1; fi; \
echo "Setting up $(1) with $$found (only when the dependencies change; a few minutes the first time)"; \
[ -x $(1)/bin/python ] || "$$found" -m venv $(1)
endef

# axe-core, the script that checks whether pages are accessible: this package carries it, and a driver of browsers that nobody
# here needs, hence --no-deps. Without it (no network, for example) the tests that need it skip and say so.
$(READY): pyproject.toml constraints.txt Makefile
	@$(call with_python,$(VENV))
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	@$(BIN)/python -m pip install --quiet --no-deps "$(AXE)" \
	  || echo "Going on without $(AXE): the tests that run axe-core on pages skip, and say so." >&2
	@touch $@

# The demo needs the library alone: about 550 MB, where `make test` needs 2.2 GB.
$(DEMO_READY): pyproject.toml constraints.txt Makefile
	@$(call with_python,$(DEMO_VENV))
	$(DEMO)/python -m pip install --quiet -c constraints.txt -e .
	@touch $@

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,docs]"
	@touch $@
