# `make demo` shows what it does, on this machine; `make quick` runs the tests that start nothing, `make test` every test.
# Each makes .venv and installs what it needs.

VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
TRIALS_ARGS ?=
PYTHON ?= python3

.PHONY: demo quick test test-all lint check lab bench trials hang-trials gpu-proof clean

demo: $(VENV)/.installed
	@scripts/demo $(VENV)

# The inner loop: under a minute, without root, without packages of the system.
quick: $(VENV)/.tested
	$(BIN)/python -m pytest -q -n auto -m "not slow" tests/unit $(PYTEST_ARGS)

# Labs of real hosts share this machine's cores: a test that fails there is run once more, alone, and is listed.
test: $(VENV)/.ready
	@scripts/system-packages
	@rm -f .pytest_cache/v/cache/lastfailed
	$(BIN)/python -m pytest -n auto --dist loadgroup $(PYTEST_ARGS) || \
	  { [ $$? -eq 1 ] && $(BIN)/python -m pytest --last-failed --last-failed-no-failures none $(PYTEST_ARGS); }

# Also the further variants of faults that are already covered.
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

$(VENV)/.installed: pyproject.toml constraints.txt scripts/venv
	scripts/venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[test]'
	touch $@

$(VENV)/.ready: $(VENV)/.installed
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
