# `make demo` shows what it does, on this machine; `make quick` runs the tests that start nothing, `make test` every test.
# Each makes .venv and installs what it needs.

VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
BASE ?= main
TRIALS_ARGS ?=
PYTHON ?= python3

.PHONY: demo quick touched test test-all lint check lab bench trials hang-trials gpu-proof clean

demo: $(VENV)/.installed
	@scripts/demo $(VENV)

# The inner loop: under a minute, without root, without packages of the system.
quick: $(VENV)/.tested
	$(BIN)/python -m pytest -q -n auto --dist worksteal --capture=sys --hypothesis-profile=quick -m "not slow" tests/unit $(PYTEST_ARGS)

# What the changes since BASE touch: the folders of tests that mirror them, and the tests that name them.
touched: $(VENV)/.ready
	@scripts/system-packages
	@$(BIN)/python -m tests.touched $(BASE) $(PYTEST_ARGS)

test: $(VENV)/.ready
	@scripts/system-packages
	@scripts/test $(BIN)/python $(PYTEST_ARGS)

# Also the further variants of faults that are already covered, and the tests of the lab itself.
test-all: PYTEST_ARGS += --long
test-all: test

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The whole gate; the tests build the wheel and try it in a clean environment.
check: lint test

lab: $(VENV)/.ready
	@scripts/system-packages
	$(BIN)/python -m tests.lab demo

bench: $(VENV)/.ready
	@scripts/system-packages bench
	$(BIN)/python -m benchmarks.peers
	$(BIN)/python -m benchmarks.smoke
	$(BIN)/python -m benchmarks.preflight
	$(BIN)/python -m benchmarks.hang
	$(BIN)/python -m benchmarks.explain
	$(BIN)/python -m benchmarks.replay

# Every fault of the smoke run many times over, in the lab; takes an hour or two. TRIALS_ARGS narrows it.
trials: $(VENV)/.ready
	@scripts/system-packages
	$(BIN)/python -m tests.trials $(TRIALS_ARGS)

# Every fault of a job that hangs, many times over, on real jobs of torchrun, mpirun and srun; takes hours. TRIALS_ARGS narrows it.
hang-trials: $(VENV)/.ready
	@scripts/system-packages
	$(BIN)/python -m tests.trials.hang $(TRIALS_ARGS)

# What can be proved on a machine with NVIDIA GPUs: gpu-proof.md and its recording. PYTHON has a torch for CUDA.
gpu-proof: $(VENV)/.installed
	$(BIN)/python -m tests.gpu_proof --python $(PYTHON)

# What is installed is locked with its hashes (scripts/lock makes the locks anew); torch by its version.
$(VENV)/.installed: pyproject.toml requirements.lock scripts/venv
	scripts/venv $(VENV)
	$(BIN)/python -m pip install -q --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.tested: $(VENV)/.installed requirements-dev.lock
	$(BIN)/python -m pip install -q --no-deps --require-hashes -r requirements-dev.lock
	touch $@

$(VENV)/.ready: $(VENV)/.tested constraints.txt
	$(BIN)/python -m pip install -q -c constraints.txt torch
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
