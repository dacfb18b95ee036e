# `make up` and `make test` do all set-up.

.DEFAULT_GOAL := help
.PHONY: help up ui wheel setup test check hooks bench torture fuzz newcomer deploycheck lock clean

VENV ?= .venv
JOBS ?= 2
KIND ?= sim

PY      := $(VENV)/bin/python
LOCK    := requirements/dev.lock
RUNLOCK := requirements/run.lock
STAMP   := $(VENV)/.frazil-setup
RUN     := $(VENV)/.frazil-run
SLOW    := tests/live tests/crash tests/torture
# All tests of a file run in one process: some share a Spark session or a server.
SPREAD   = -n $(JOBS) --dist loadfile --no-loadscope-reorder
TYPED   := src tests ui $(wildcard bench examples)
PYTHONS := $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11)

# Without bytecode on disk each of the many processes would compile all of our modules: 0.4 s each.
unexport PYTHONDONTWRITEBYTECODE
COMPILE_OURS = @$(PY) -m compileall -q src

AT_LEAST_3_11 := -c 'import sys; sys.exit(sys.version_info < (3, 11))'

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  VENV=dir uses another environment than .venv; PYTHON=path names the interpreter."

up: $(RUN) ## Run a node; ARGS="--http-port 5000" passes flags to `frazil up`
	$(COMPILE_OURS)
	@$(PY) ui/build.py --if-possible
	@exec $(VENV)/bin/frazil up $(ARGS)

ui: $(PY) ## Build the web page after a change in ui/ (`make up` does it, too); needs Node.js
	@$(PY) ui/build.py

# hatchling comes with the lock; nothing is fetched. Same sources, same bytes.
wheel: ui $(RUN) ## Build a wheel and an sdist into dist/, with the web page inside
	@rm -rf dist
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 1577836800) $(PY) -m hatchling build -d dist

setup: $(STAMP) ## Set up .venv from the lock (other targets do it, too)

$(PY):
	@for candidate in $(PYTHONS); do \
	    if "$$candidate" $(AT_LEAST_3_11) 2>/dev/null; then \
	        echo "making $(VENV) with $$("$$candidate" --version)"; \
	        exec "$$candidate" -m venv "$(VENV)"; \
	    fi; \
	done; \
	echo "Frazil needs Python 3.11 or newer; none found among: $(PYTHONS)." \
	     "Install one, or set PYTHON=/path/to/python3." >&2; \
	exit 1

# pip shows progress on a terminal and is silent elsewhere.
PIP = $(PY) -m pip --disable-pip-version-check install $$([ -t 2 ] || echo --quiet)

# What a node needs; the tests need more, in the same versions.
$(RUN): $(RUNLOCK) pyproject.toml | $(PY)
	@$(PY) $(AT_LEAST_3_11) || { \
	    echo "$(VENV) holds a Python older than 3.11: remove that folder and run make again." >&2; \
	    exit 1; }
	@echo "installing what Frazil needs into $(VENV): about 700 MB, most of it Spark"
	@$(PIP) --require-hashes -r $(RUNLOCK)
	@$(PIP) --no-deps --no-build-isolation -e .
	@$(PY) -m frazil warm
	@touch $@

$(STAMP): $(LOCK) $(RUN)
	@$(PIP) --require-hashes -r $(LOCK)
	@$(PY) -m tests.live.kafka.jars
	@$(PY) -m tests.live.kafka_port.jars
	@$(PY) -m tests.live.kafka_port.client_jars
	@$(PY) -m tests.live.flight.jdbc_jar
	@$(PY) -m tests.live.rest_catalog.jars
	@$(PY) -m tests.live.s3.jars
	@touch $@

test: $(STAMP) ## Run every test; ARGS="-k name" passes options to pytest
	$(COMPILE_OURS)
	@$(PY) ui/build.py --dependencies --if-possible
	@$(PY) -m tests.ui.browser
	$(PY) -m pytest $(SPREAD) $(ARGS)

check: $(STAMP) ## Before every commit: lint, format, types, fast tests
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy $(TYPED)
	$(PY) -m pytest $(SPREAD) $(SLOW:%=--ignore=%) $(ARGS)

hooks: ## Run `make check` before each commit
	git config core.hooksPath .githooks

bench: $(STAMP) ## Run every script in bench/; fails if one missed its bar
	@missed=""; \
	for script in $(sort $(filter-out bench/__init__.py,$(wildcard bench/*.py))); do \
	    echo "== $$script"; \
	    PYTHONPATH=. $(PY) "$$script" || missed="$$missed $$script"; \
	done; \
	if [ -n "$$missed" ]; then echo "missed a bar or failed:$$missed" >&2; exit 1; fi

torture: $(STAMP) ## Run a torture; KIND=sim, CYCLES=n and SEED=n choose which and how long
	$(PY) -m tests.torture --kind $(KIND) $(if $(CYCLES),--cycles $(CYCLES)) $(if $(SEED),--seed $(SEED))

fuzz: $(STAMP) ## Send mutated input; WHAT=wire|json|decode|encode|otlp|sql|statements|kafka_wire|kafka, COUNT=n, SEED=n
	$(PY) -m tests.fuzz --kind $(or $(WHAT),otlp) --count $(or $(COUNT),200000) --jobs $(JOBS) \
	    $(if $(SEED),--seed $(SEED))

COMPILE = $(PY) -m uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
    --generate-hashes --no-annotate --custom-compile-command "make lock"

newcomer: $(STAMP) ## A fresh clone and home without Node.js: make up, a browser, every command of the docs
	@$(PY) -m tests.newcomer $(ARGS)

deploycheck: $(PY) ## Lint Dockerfile, compose file and Helm chart; fetches linters into .cache
	@$(PY) -m tests.deploy

lock: | $(PY) ## Update the lock from pyproject.toml; UPGRADE=1 takes the newest versions
	@$(PY) -c 'import uv' 2>/dev/null || $(PY) -m pip install --quiet --disable-pip-version-check uv
	$(COMPILE) --extra dev --output-file $(LOCK) $(if $(UPGRADE),--upgrade)
	$(COMPILE) --extra lake --extra otel --extra build --constraint $(LOCK) --output-file $(RUNLOCK)

clean: ## Remove caches and build output, but not .venv
	rm -rf build dist .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests $(wildcard bench) -type d -name __pycache__ -prune -exec rm -rf {} +
