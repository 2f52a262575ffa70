# Everything runs in .venv with the versions of constraints.txt; Python 3.11+ and make suffice.
PYTHON ?= python3
PRESET ?= fast
BIN := .venv/bin

.PHONY: help demo test check bench reproduce clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,all]'
	@touch $@

demo: .venv/installed  ## map a crop in a real scene from 100 labels (PRESET=paper: full schedule)
	$(BIN)/thonecls demo --preset $(PRESET)

test: .venv/installed check  ## checks, then the whole test suite
	$(BIN)/python -m pytest -n 2

check: .venv/installed  ## formatting, lint, types, import layers, doctests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --quiet --doctest-modules src

bench: .venv/installed  ## step, scoring, scenes of up to 100 megapixels, F1 by time (an hour)
	$(BIN)/python benchmarks/step.py
	$(BIN)/python benchmarks/scoring.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/schedule.py --seeds 1

reproduce: .venv/installed  ## the paper's experiments as far as two cores get (hours): docs/results.md
	$(BIN)/python benchmarks/reproduce.py $(if $(DATA),--data-root $(DATA))
	$(BIN)/python benchmarks/render.py

clean:  ## remove the environment and caches
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
