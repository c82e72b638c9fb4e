# `make` without a target lists the targets. Targets that need the environment (.venv) create and update it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo dist docs test test-long test-cluster test-containers chaos soak fuzz check words env lock audit pictures recording clean
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
TOOLS := $(VENV)/tools
SITE := $(VENV)/site

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## run the whole pipeline for two minutes, scale it live, then report
	@bash infra/bootstrap.sh $(VENV) demo

dist: $(VENV)/.ready ## write a wheel into dist/, to be installed without a clone
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist . && ls dist/*.whl

test: $(VENV)/.ready check ## test the guarantees: real brokers, services, autoscaler, one report, one browser (9 minutes on 2 cores)
	@$(PYTEST) -n 2 --dist loadfile tests/chaos tests/contract tests/integration -m "not long" --durations=15

test-long: $(VENV)/.ready ## run all other tests: faults, every breakdown of the report, Spark clusters, the rebalance protocol in depth
	@$(PYTEST) -n 2 --dist loadfile tests -m long --durations=25

test-cluster: $(VENV)/.ready ## test on a real Kubernetes (KUBECONFIG, or ../shared/tools/cluster); skipped without one
	@$(PYTEST) tests/kubernetes --durations=15 -rs

test-containers: $(VENV)/.ready ## test images and the demo of docker-compose.yml on a real Docker engine (10 minutes on 2 cores)
	@$(PYTEST) tests/containers -m containers -rs -rP --durations=5

chaos: $(VENV)/.ready ## inject random faults into a running pipeline and check every guarantee: SEEDS=5 SEED=1 VARIANT=new JSON=FILE
	@PYTHONPATH=tests/support:$$PYTHONPATH $(BIN)/python -m chaos_suite --seeds $(or $(SEEDS),5) --seed $(or $(SEED),1) $(if $(VARIANT),--variant $(VARIANT)) $(if $(JSON),--json $(JSON))

soak: $(VENV)/.ready ## move partitions at random for MINUTES=120 under load: memory, file descriptors, events in time
	@PYTHONPATH=tests/support:$$PYTHONPATH $(BIN)/python -m soak --minutes $(or $(MINUTES),120)

fuzz: $(VENV)/.ready ## feed hostile input to every parser of a record, a page and a file: S=60 SEED=1 TARGET=scenario
	@PYTHONPATH=tests/support:$$PYTHONPATH $(BIN)/python -m fuzz_suite --seconds $(or $(S),60) --seed $(or $(SEED),1) $(TARGET)

check: $(VENV)/.ready ## run the fast checks: format, lint, types, dependency rules, English, budgets, unit tests (no JVM, 70 s)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy && $(BIN)/mypy docs/pictures.py docs/follow.py docs/generate.py docs/lessons/{checker,exercises,export}.py && $(BIN)/mypy --config-file tests/mypy.ini
	@$(BIN)/lint-imports
	@$(BIN)/codespell
	@$(BIN)/python tests/prose/lint.py
	@$(BIN)/marimo -q check --strict docs/lessons/lesson_*.py
	@$(PYTEST) -n 2 --dist worksteal tests/unit tests/theory -m "not long" --durations=5

words: $(VENV)/.ready ## list the errors of English, in FILES="services docs/howto/keda.md" only; LEVEL=suggestion lists more
	@$(BIN)/python tests/prose/lint.py $(FILES) $(if $(LEVEL),--level $(LEVEL))

docs: $(VENV)/.ready $(SITE)/.ready ## write the generated pages, the lessons with outputs, then the site in out/docs; warnings, broken links and anchors are errors
	@$(BIN)/python docs/generate.py
	@$(BIN)/python docs/lessons/export.py
	@$(SITE)/bin/sphinx-build -W --keep-going --fresh-env --quiet -c docs . out/docs

$(SITE)/.ready: pyproject.toml
	@$(BIN)/python -m venv $(SITE) && $(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"] \
	  ["optional-dependencies"]["docs"], sep="\n")' >$(SITE)/packages.txt && $(SITE)/bin/pip install --quiet --requirement $(SITE)/packages.txt && touch $@

lock: $(VENV)/.ready ## write infra/docker/*.lock, the Python packages of the images with hashes (Linux, amd64, Python 3.11)
	@$(BIN)/python infra/docker/lock.py

audit: $(TOOLS)/.ready ## list known vulnerabilities of the locked Python packages of the images (queries pypi.org)
	@# Strict: a package that pypi.org does not know must not count as one without vulnerabilities.
	@$(TOOLS)/bin/pip-audit --strict --disable-pip --requirement infra/docker/tailpack.lock --requirement infra/docker/report.lock

$(TOOLS)/.ready:
	@python3 -m venv $(TOOLS) && $(TOOLS)/bin/pip install --quiet 'pip-audit==2.*' && touch $@

recording: $(VENV)/.ready ## simulate the demo under two policies, and write the recording of `tailpack view --demo`
	@rm -rf out/recording && mkdir -p tailpack/recordings && cd $(CURDIR) && $(BIN)/tailpack simulate demo --out out/recording/tail-aware && \
	 $(BIN)/tailpack simulate demo --policy keda-hpa --set payment.rebalance_protocol=cooperative-sticky --out out/recording/keda-hpa && \
	 $(BIN)/tailpack view out/recording/tail-aware out/recording/keda-hpa --save tailpack/recordings/surge.json.gz

pictures: $(VENV)/.ready ## make docs/moves.svg, and docs/live-view.svg and report.png from a run of the demo (needs Chromium): INTO=docs
	@mkdir -p $(or $(INTO),docs) && $(BIN)/python docs/pictures.py $(or $(INTO),docs)

env: $(VENV)/.ready ## create or update .venv, and compile the code of policies and simulator

$(VENV)/.ready: pyproject.toml infra/bootstrap.sh
	@bash infra/bootstrap.sh $(VENV)
	@touch $@

clean: ## remove the environment, caches and out/
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
