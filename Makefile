# One word for one job. A fresh machine needs Python 3.11 or newer and the package registries, nothing else.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PAPER  := $(VENV)/.ready-for-paper
DEV    := $(VENV)/.ready-for-dev

.PHONY: demo test lint bench docs lock clean

demo: $(PAPER)  ## the paper's experiments: figures, tables, and which claims hold
	$(BIN)/roundel paper --out out/paper

test: $(DEV)  ## everything that can be checked
	$(BIN)/pytest $(PYTEST_ARGS)

lint: $(DEV)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(DEV)  ## speed as ratios to a floor or a peer in the same run; tables here, JSON in out/bench, and docs/benchmarks.md
	for part in core sequential simulation tournament leader web clicks page; do $(BIN)/python benchmarks/$$part.py || exit 1; done

docs: $(DEV)  ## the documentation as HTML, in docs/_build
	$(BIN)/sphinx-build -W -q docs docs/_build

$(BIN)/uv: requirements/dev.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "$$(sed -n 's/^\(uv==[^ ]*\).*/\1/p' requirements/dev.lock)"
	touch $@

$(PAPER): requirements/paper.lock pyproject.toml $(BIN)/uv
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements/paper.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	touch $@

$(DEV): requirements/dev.lock pyproject.toml $(BIN)/uv tools/system_packages.sh
	sh tools/system_packages.sh
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements/dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	touch $@ $(PAPER)

LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header

lock:  ## resolve the newest versions again, for every supported Python
	$(LOCK) --all-extras --group dev --output-file requirements/dev.lock pyproject.toml
	$(LOCK) --extra paper --group build --constraint requirements/dev.lock --output-file requirements/paper.lock pyproject.toml

clean:
	rm -rf $(VENV) out docs/_build
