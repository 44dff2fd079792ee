# Every target sets up what it needs in .venv; the second run is quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
BENCH := $(VENV)/.bench

.DEFAULT_GOAL := help
.PHONY: help demo serve test lint docs bench mutants fuzz kills clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

# What keyhole runs on, its extras but for Spark and PostgreSQL, and what builds it.
$(RUNS): requirements.txt pyproject.toml
	@echo "Setting up $(VENV) (once) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "keyhole needs Python 3.11 or newer; set PYTHON=python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.txt $$(grep -E '^(editables|hatchling)=' requirements-dev.txt) 2>$(VENV)/pip.log || { cat $(VENV)/pip.log; exit 1; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e . 2>$(VENV)/pip.log || { cat $(VENV)/pip.log; exit 1; }
	@touch $@

$(READY): $(RUNS) requirements-dev.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-dev.txt 2>$(VENV)/pip.log || { cat $(VENV)/pip.log; exit 1; }
	@touch $@

demo: $(RUNS)  ## review the example world and say where the report is
	@$(BIN)/keyhole demo --out demo --force
	@echo "  From here: make serve"

serve: $(RUNS)  ## open the workbench on the example world
	@test -d demo || $(MAKE) --no-print-directory demo
	@$(BIN)/keyhole serve demo

test: $(READY)  ## lint, types, layers, tests, docs
	@setup/packages.sh
	@# Kernels are compiled while the code is read.
	@$(BIN)/keyhole demo --out $(VENV)/demo --force > $(VENV)/demo.log 2>&1 & \
	$(MAKE) --no-print-directory lint; linted=$$?; wait; exit $$linted
	@$(BIN)/python -m pytest -n 2
	@$(MAKE) --no-print-directory docs

lint: $(READY)
	@$(BIN)/ruff check -q . && $(BIN)/ruff format -q --check .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache > $(VENV)/imports.log || { cat $(VENV)/imports.log; exit 1; }

docs: $(READY)  ## build the documentation into docs/_build/html
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

$(BENCH): $(READY) requirements-bench.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-bench.txt 2>$(VENV)/pip.log || { cat $(VENV)/pip.log; exit 1; }
	@touch $@

bench: $(BENCH)  ## measure against what a user would write instead
	@$(BIN)/python -m benchmarks

mutants: $(READY)  ## change the code in small ways and see whether the tests notice
	@nice -n 10 $(BIN)/python -m tests.mutants

fuzz: $(READY)  ## make 20,000 random calls, or those of SEED=files:100-200
	@$(BIN)/python -m tests.fuzz $(SEED)

kills: $(READY)  ## kill every verb that writes, and the workbench, 192 times
	@nice -n 10 $(BIN)/python -m pytest -n 0 -p no:cacheprovider tests/kills.py

clean:  ## remove everything that was made
	@rm -rf $(VENV) demo docs/_build dist build
