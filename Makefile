# `make demo` and `make test` work on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Compiled files are kept, even if the shell says otherwise: each worker compiles the tests anew.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder
CHECKS := $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
PIP := $(BIN)/pip --quiet --disable-pip-version-check
# The package index of a build of torch, as PyTorch's page names it; without it, the usual build.
TORCH_INDEX ?=
# What only torch's CUDA build needs.
CUDA := cuda-bindings cuda-toolkit nvidia-cudnn-cu13 nvidia-cusparselt-cu13 nvidia-nccl-cu13 \
	nvidia-nvshmem-cu13 triton

.PHONY: demo test test-fast test-faults check docs notebook benchmark lock clean

demo: $(INSTALLED)
	$(BIN)/glassformer demo

# The checks run beside the tests, and print after them.
test: $(INSTALLED)
	@mkdir -p build
	@{ $(CHECKS); } >build/checks.log 2>&1 & checks=$$!; $(PYTEST) $(ARGS); tests=$$?; \
		wait $$checks; checks=$$?; cat build/checks.log; exit $$((tests + checks))

# A part of every room.
test-fast: $(INSTALLED)
	$(PYTEST) --fast $(ARGS)

# Kills, full disks, damaged files, hostile requests: at most half an hour; ARGS=--quick: minutes.
test-faults: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python tests/faults $(ARGS)

check: $(INSTALLED)
	$(CHECKS)

# The lock has hashes for every package but torch, whose builds differ: CPU, CUDA, ROCm.
$(INSTALLED): pyproject.toml constraints.txt requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes -r requirements.lock
	@command -v nvidia-smi >/dev/null || test -n "$(TORCH_INDEX)" || echo "The usual torch for Linux brings CUDA, \
	5.4 GB in all. README says how to take the build for CPUs: make TORCH_INDEX=…"
	$(PIP) install -c constraints.txt $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch
	$(PIP) install --no-deps --no-build-isolation -e .
	touch $@

# The site. It runs every example, with a small translator of dates and amounts.
DEMO := --size 12000 --epochs 4
docs: $(INSTALLED) build/docs/demo/en-de/config.json
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs/html
	$(BIN)/python docs/check_links.py build/docs/html
	@echo "open build/docs/html/index.html"

# The site's page of the paper as a notebook with outputs; a test fails until it has today's files.
notebook: $(INSTALLED)
	$(BIN)/python docs/paper_notebook.py

build/docs/demo/en-de/config.json: $(INSTALLED)
	$(BIN)/glassformer demo --out build/docs/demo $(DEMO) </dev/null

benchmark: $(INSTALLED)
	$(BIN)/python -m benchmarks $(or $(ARGS),--help)

# Writes requirements.lock anew. Pins that fit stay; ARGS=--upgrade takes the newest versions.
lock:
	$(PYTHON) -m venv build/lock
	build/lock/bin/pip install --quiet --disable-pip-version-check uv==0.13.9
	printf '%s\n' $(CUDA) > build/lock/cuda.txt
	build/lock/bin/uv pip compile --quiet --no-header --universal --fork-strategy fewest \
		--python build/lock/bin/python --python-version 3.11 --generate-hashes \
		--extra dev --extra docs --constraints constraints.txt --excludes build/lock/cuda.txt \
		--no-emit-package torch $(ARGS) --output-file requirements.lock pyproject.toml
	sed -i '1i # All packages of the project, its tests and its site but torch, with the hashes of their files.\n# `make lock` makes this file anew.' requirements.lock

clean:
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache
