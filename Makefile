# Everything runs in .venv with the versions of constraints.txt; Python 3.11+ and make suffice.
# Tools are run as modules: the first line of a script cannot name a folder with spaces in it.
PYTHON ?= python3
SEEDS ?= 5
ROUNDS ?= 300
CASES ?= 2000
# Three for two cores: browsers, clusters and what is killed wait as much as they work.
WORKERS ?= 3
RUN := .venv/bin/python -m
# Compiled once, not by every program that a test starts, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo studio page test coverage test-isa crash fuzz audit lock check dist qgis bench reproduce records leaderboard docs clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(RUN) pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs,all]'
	@touch $@

demo: .venv/installed  ## map a crop in a real scene from 100 labels (PRESET=fast or paper: the network)
	$(RUN) thonecls.cli demo $(if $(PRESET),--preset $(PRESET))

studio: .venv/installed  ## label, learn and look in the browser, on a real scene (SCENE=scene.tif: on yours)
	$(RUN) thonecls.cli studio $(if $(SCENE),"$(SCENE)")

page:  ## build the studio's page into the package, from studio/ (needs npm)
	npm ci --prefix studio --no-audit --no-fund
	npm run build --prefix studio

test: .venv/installed check  ## checks, then the whole test suite (COVERAGE=1: and the share of lines that it runs)
	$(RUN) pytest -n $(WORKERS) --dist worksteal $(if $(COVERAGE),--cov=thonecls)

coverage: .venv/installed  ## share of the lines that the tests run (TESTS=tests/raster: some of them)
	$(RUN) pytest -n $(WORKERS) --dist worksteal --cov=thonecls $(TESTS)

test-isa: .venv/installed  ## what learns, with the arithmetic of other processors (ISA="default/SSE41")
	.venv/bin/python tests/isa.py --seeds $(SEEDS) $(ISA)

crash: .venv/installed  ## commands killed at random moments, and what follows (ROUNDS=300)
	.venv/bin/python tests/crash.py --rounds $(ROUNDS)

fuzz: .venv/installed  ## spoilt files for every reader, thousands (CASES=5000; ATHERIS=1 where it is installed)
	.venv/bin/python tests/fuzz.py $(if $(ATHERIS),--atheris,--cases $(CASES))

audit: .venv/installed  ## licences and known weaknesses of what is installed; fails for neither
	-$(PYTHON) -m venv .venv/audit
	-.venv/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	.venv/bin/python .ci/audit.py .venv/audit/bin/python

lock: .venv/installed  ## constraints.lock: the versions of constraints.txt with hashes
	$(RUN) pip install --quiet --disable-pip-version-check --dry-run --ignore-installed --no-deps \
		--report .venv/report.json -r constraints.txt
	.venv/bin/python .ci/lock.py .venv/report.json > constraints.lock

check: .venv/installed  ## formatting, lint, types, import layers, doctests
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	.venv/bin/python -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'
	$(RUN) pytest --quiet --doctest-modules src

dist:  ## wheel and sdist in dist/, installed and tried in a fresh environment: docs/releasing.md
	rm -rf dist .venv/build .venv/fresh
	$(PYTHON) -m venv .venv/build
	.venv/build/bin/python -m pip install --quiet --disable-pip-version-check 'hatchling>=1.26'
	.venv/build/bin/python -m hatchling build -d dist
	$(PYTHON) -m venv .venv/fresh
	.venv/fresh/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		"$$(ls dist/*.whl)[demo]"
	.venv/fresh/bin/python .ci/dist.py dist .venv/build/bin/python

qgis:  ## the QGIS plugin as a zip in dist/, to install from QGIS (REPOSITORY=https://... EMAIL=...: for its plugin repository)
	$(PYTHON) .ci/qgis.py dist "$(REPOSITORY)" "$(EMAIL)"

bench: .venv/installed  ## step, scoring, scenes of up to 100 megapixels, F1 by time (an hour)
	.venv/bin/python benchmarks/step.py
	.venv/bin/python benchmarks/scoring.py
	.venv/bin/python benchmarks/scale.py
	.venv/bin/python benchmarks/schedule.py --seeds 1

reproduce: .venv/installed  ## the paper's experiments as far as two cores get (hours): docs/results.md
	.venv/bin/python benchmarks/reproduce.py $(if $(DATA),--data-root "$(DATA)")
	.venv/bin/python benchmarks/render.py
	.venv/bin/python benchmarks/leaderboard.py

records: .venv/installed  ## check every file in benchmarks/records against the schema of a record
	.venv/bin/python benchmarks/leaderboard.py --check

leaderboard: .venv/installed  ## the leaderboard from the records: runs/leaderboard.html, and the tables of docs/leaderboard.md
	.venv/bin/python benchmarks/leaderboard.py

docs: .venv/installed  ## the site of docs/ with the API, in site/; warnings are errors
	$(RUN) sphinx --fail-on-warning --keep-going --quiet -c docs . site
	THONECLS_SITE=site $(RUN) pytest --quiet tests/test_site.py -k pages

clean:  ## remove the environment and caches
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis
