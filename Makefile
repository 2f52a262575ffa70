# Everything runs in .venv with the versions of constraints.txt; Python 3.11+ and make suffice.
PYTHON ?= python3
PRESET ?= fast
BIN := .venv/bin

.PHONY: help demo test check bench paper clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,methods]'
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

paper: .venv/installed  ## Indian Pines by both presets, 3 seeds: README's and the docs' tables (hours)
	$(BIN)/python benchmarks/schedule.py --seeds 3
	for seed in 0 1 2; do for target in 2 11; do \
	  $(BIN)/python benchmarks/training.py --target $$target --preset fast --share 0.5 --seed $$seed || exit 1; \
	done; done
	$(BIN)/python benchmarks/training.py --target 2 --loss variational
	$(BIN)/python benchmarks/render.py

clean:  ## remove the environment and caches
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
