# Everything runs in an environment of the repository's own, .venv. A stamp beside it says what it holds;
# a changed pyproject.toml installs again.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH ?= torch==2.13.0
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help run test test-all check format bench bench-torch docs site clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1\t/' | expand -t 16

run: $(VENV)/.core ## the report of Llama 3 8B
	@$(BIN)/assay llama-3-8b

test: $(VENV)/.test ## the tests
	@$(BIN)/python -m pytest -n $(JOBS)

test-all: $(VENV)/.test ## the slow ones too
	@$(BIN)/python -m pytest -n $(JOBS) -m "slow or not slow"

check: $(VENV)/.dev ## format, lint, types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(VENV)/.dev ## rewrite what a formatter can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(VENV)/.bench $(VENV)/.peers ## a table of medians and ratios, one run
	@$(BIN)/python -m compileall -q src  # as pip leaves what it installs
	@$(BIN)/python benchmarks/bench.py $(ARGS)

bench-torch: $(VENV)/.test ## the same of running a model, against transformers
	@$(BIN)/python benchmarks/running.py $(ARGS)

docs: $(VENV)/.test ## write the generated parts of docs/ anew
	@PYTHONPATH=src $(BIN)/python tests/documents.py

site: $(VENV)/.docs ## the documents as a site, in site/: open site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict # not --quiet: it hides what --strict should stop at
	@$(BIN)/python tests/built_site.py site

clean: ## forget the environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site

$(VENV)/.made:
	@echo "setting up $(VENV)" >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "assay needs Python 3.11; name one: make PYTHON=...")'
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.core: pyproject.toml $(VENV)/.made
	@$(PIP) --editable .
	@touch $@

# torch by its exact version and first: what is installed later finds it there and asks for no other
$(VENV)/.test: pyproject.toml $(VENV)/.core
	@echo "installing what the tests compare with (torch, transformers)" >&2
	@$(PIP) "$(TORCH)"
	@$(PIP) --editable ".[test]"
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.core
	@$(PIP) --editable ".[dev]"
	@touch $@

$(VENV)/.docs: pyproject.toml $(VENV)/.made
	@$(PIP) --editable ".[docs]"
	@touch $@

$(VENV)/.bench: pyproject.toml $(VENV)/.core
	@$(PIP) --editable ".[arrays]"
	@touch $@

# other calculators, in an environment of their own; what cannot be installed is left out
$(VENV)/.peers: $(VENV)/.made
	@$(PYTHON) -m venv $(VENV)/peers
	@for peer in llm-flops kvfit hf-mem; do \
		$(VENV)/peers/bin/python -m pip install -qq --disable-pip-version-check $$peer \
			|| echo "$$peer cannot be installed here: left out" >&2; \
	done
	@touch $@
