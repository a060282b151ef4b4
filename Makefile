# `make demo` and `make test` work on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test test-fast test-faults check docs benchmark clean

demo: $(INSTALLED)
	$(BIN)/glassformer demo

test: check
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

test-fast: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder --fast

# Kills, full disks, damaged files, hostile requests: at most half an hour; ARGS=--quick: minutes.
test-faults: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python tests/faults $(ARGS)

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

# The site. It runs every example, with a small translator of dates and amounts.
docs: $(INSTALLED) build/docs/demo/en-de/config.json
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs/html
	$(BIN)/python docs/check_links.py build/docs/html
	@echo "open build/docs/html/index.html"

build/docs/demo/en-de/config.json: $(INSTALLED)
	$(BIN)/glassformer demo --directory build/docs/demo --size 12000 --epochs 4 </dev/null

benchmark: $(INSTALLED)
	$(BIN)/python -m benchmarks $(or $(ARGS),--help)

clean:
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache
