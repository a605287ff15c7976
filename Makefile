# The two commands of the README are `make demo` and `make test`; each builds
# its own virtual environment with nothing but Python >= 3.11 and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist worksteal
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check
unexport PYTHONDONTWRITEBYTECODE # nothing is compiled at installation: every start would

.PHONY: demo test test-slow test-nojit test-oldest lint docs fuzz mutants bench clean help

help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo: $(VENV)/.core ## find the words that tell three novels apart; write demo.html
	@$(BIN)/featstream demo --report demo.html

test: $(VENV)/.dev ## the unit tests and doctests
	$(PYTEST)

test-slow: $(VENV)/.dev ## the heavy suites, and property tests on random examples
	$(PYTEST) -m "(slow or hypothesis) and not network" --hypothesis-profile=random

test-nojit: $(VENV)/.dev ## the kernels as plain Python
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m "not slow and not jit_only" \
		tests/measures tests/test_parallel.py tests/selectors/test_saola.py

test-oldest: | $(BIN)/python ## the tests with the oldest versions that pyproject.toml allows
	$(INSTALL) uv
	$(PYTHON) -m venv $(VENV)-oldest
	$(BIN)/uv pip install --quiet --python $(VENV)-oldest/bin/python --resolution lowest-direct -e '.[dev]'
	SCIPY_ARRAY_API=1 $(VENV)-oldest/bin/python -m pytest -q -n 2 --dist worksteal

lint: $(VENV)/.dev ## style, imports and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

docs: $(VENV)/.docs ## the documentation site, in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

FUZZ_COUNT = # inputs per target, such as 2000; by default five minutes each
FUZZ_LENGTH = $(if $(strip $(FUZZ_COUNT)),--count $(FUZZ_COUNT),--seconds 300)

fuzz: $(VENV)/.dev ## damaged input for the readers, five minutes each, or FUZZ_COUNT=2000
	@for target in svmlight state plink csv npy npz npz-member cols table h5ad svm parquet run; do \
		$(BIN)/python -m fuzz $$target $(FUZZ_LENGTH) || exit 1; \
	done

N = 20
SEED = 0

mutants: $(VENV)/.dev ## small wrong changes that no test notices: N=20 of them, SEED=0
	$(BIN)/python -m fuzz.mutants --count $(N) --seed $(SEED)

bench: $(VENV)/.dev ## ratios against named baselines
	$(BIN)/python -m benchmarks

dist: | $(BIN)/python ## the wheel and the source archive, in dist/
	$(INSTALL) build
	$(BIN)/python -m build

clean: ## forget caches, the site and the environment
	rm -rf $(VENV) $(VENV)-oldest .pytest_cache .mypy_cache .ruff_cache .hypothesis .numba_cache docs/_build docs/generated docs/gallery
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("featstream needs Python 3.11 or newer; found " + sys.version.split()[0] + ". Set PYTHON=python3.12, say." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(INSTALL) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[dev]'
	@$(BIN)/python -c "from featstream import SAOLA" # for the bytecode
	@touch $@ $(VENV)/.core $(VENV)/.docs

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[docs]'
	@touch $@ $(VENV)/.core
