# `make` alone lists the targets. The environment (.venv) is made and kept up to date by whatever needs it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test test-long check env bench tables clean
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## two minutes of the whole pipeline, scaled live, then the report
	@bash infra/bootstrap.sh $(VENV) demo

test: $(VENV)/.ready check ## all but `test-long`, on real Kafka and real Spark (15 to 20 minutes on 2 cores)
	@$(PYTEST) -n 2 --dist loadfile tests/theory/exhaustive tests/contract tests/integration tests/chaos -m "not long" --durations=25

test-long: $(VENV)/.ready ## what needs minutes of Spark: a standalone cluster, streaming, taxi months, the notebook
	@$(PYTEST) tests/integration -m long --durations=10

check: $(VENV)/.ready ## the fast part: format, lint, types, dependency rules, unit tests (no JVM)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(PYTEST) -n 2 tests/unit tests/theory --ignore=tests/theory/exhaustive --durations=5

bench: $(VENV)/.ready ## measure this machine: μ_eff, start-up, processes, Spark (about 10 minutes, quiet machine)
	@$(BIN)/tailpack bench all

tables: $(VENV)/.ready ## write the tables of docs/results.md from bench/reference
	@$(BIN)/tailpack bench tables

env: $(VENV)/.ready ## make or update .venv

$(VENV)/.ready: pyproject.toml infra/bootstrap.sh
	@bash infra/bootstrap.sh $(VENV)
	@touch $@

clean: ## remove the environment, caches and out/
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
