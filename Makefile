# One word for one job. A fresh machine needs Python 3.11 or newer and the package registries, nothing else.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test lint bench docs lock clean

demo: $(READY)  ## the paper's experiments: figures, tables, and which claims hold
	$(BIN)/roundel paper --out out/paper

test: $(READY)  ## everything that can be checked
	$(BIN)/pytest $(PYTEST_ARGS)

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)  ## speed as ratios to a floor or a peer in the same run; tables here, JSON in out/bench
	$(BIN)/python benchmarks/core.py

docs: $(READY)
	$(BIN)/sphinx-build -W -q docs docs/_build

$(READY): requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $(READY)

lock:  ## resolve the newest versions again, for every supported Python
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --group dev \
	  --generate-hashes --no-annotate --no-header --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) out docs/_build
