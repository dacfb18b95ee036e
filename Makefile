# Everything a newcomer needs: `make test` on a fresh clone does all set-up by itself.

.DEFAULT_GOAL := help
.PHONY: help setup test check bench torture fuzz lock clean

VENV ?= .venv
JOBS ?= 2
KIND ?= sim

PY      := $(VENV)/bin/python
LOCK    := requirements/dev.lock
STAMP   := $(VENV)/.frazil-setup
SLOW    := tests/live tests/crash tests/torture
# All tests of a file run in one process: some share a Spark, or a server.
SPREAD   = -n $(JOBS) --dist loadfile --no-loadscope-reorder
TYPED   := src tests $(wildcard bench examples)
PYTHONS := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11)

AT_LEAST_3_11 := -c 'import sys; sys.exit(sys.version_info < (3, 11))'

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  VENV=dir uses another environment than .venv; PYTHON=path names the interpreter."

setup: $(STAMP) ## Make the environment in .venv from the lock (other targets do this by themselves)

$(PY):
	@for candidate in $(PYTHONS); do \
	    if "$$candidate" $(AT_LEAST_3_11) 2>/dev/null; then \
	        echo "making $(VENV) with $$("$$candidate" --version)"; \
	        exec "$$candidate" -m venv "$(VENV)"; \
	    fi; \
	done; \
	echo "Frazil needs Python 3.11 or newer, and none of these is one: $(PYTHONS)." \
	     "Install one, or name it with PYTHON=/path/to/python3." >&2; \
	exit 1

$(STAMP): $(LOCK) pyproject.toml | $(PY)
	@$(PY) $(AT_LEAST_3_11) || { \
	    echo "$(VENV) holds a Python older than 3.11: remove that folder and run make again." >&2; \
	    exit 1; }
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(PY) -m frazil warm
	$(PY) -m tests.live.kafka_jars
	$(PY) -m tests.live.rest_jars
	@touch $@

test: $(STAMP) ## Run every test; ARGS="-k name" passes options on to pytest
	$(PY) -m pytest $(SPREAD) $(ARGS)

check: $(STAMP) ## Before every commit: lint, format, types, fast tests
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy $(TYPED)
	$(PY) -m pytest $(SPREAD) $(SLOW:%=--ignore=%) $(ARGS)

bench: $(STAMP) ## Run every script in bench/; fails at the end when one missed its bar
	@missed=""; \
	for script in $(sort $(filter-out bench/__init__.py,$(wildcard bench/*.py))); do \
	    echo "== $$script"; \
	    PYTHONPATH=. $(PY) "$$script" || missed="$$missed $$script"; \
	done; \
	if [ -n "$$missed" ]; then echo "missed its bar, or failed:$$missed" >&2; exit 1; fi

torture: $(STAMP) ## Break it on purpose; KIND=sim, CYCLES=n and SEED=n choose what and how long
	$(PY) -m tests.torture --kind $(KIND) $(if $(CYCLES),--cycles $(CYCLES)) $(if $(SEED),--seed $(SEED))

fuzz: $(STAMP) ## Compare mutated requests with protobuf; WHAT=wire|json|decode|encode|all, COUNT=n and SEED=n
	$(PY) -m tests.fuzz --kind $(or $(WHAT),all) --count $(or $(COUNT),200000) --jobs $(JOBS) \
	    $(if $(SEED),--seed $(SEED))

lock: | $(PY) ## Remake the lock from pyproject.toml; UPGRADE=1 takes the newest versions
	@$(PY) -c 'import uv' 2>/dev/null || $(PY) -m pip install --quiet --disable-pip-version-check uv
	$(PY) -m uv pip compile pyproject.toml --extra dev --output-file $(LOCK) --quiet \
	    --universal --python-version 3.11 --generate-hashes --no-annotate \
	    --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)

clean: ## Remove caches and build output; the environment stays
	rm -rf build dist .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests $(wildcard bench) -type d -name __pycache__ -prune -exec rm -rf {} +
