# `make demo` shows on this machine what doctor does; `make quick` runs the tests that start nothing, `make test` those and
# the main fault of each command on real hosts, `make test-all` all tests.
# Each of them creates .venv and installs what it needs.

VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
BASE ?= main
MINDSPORE ?=
TRIALS_ARGS ?=
MUTATE_ARGS ?= --draw 200 --seed 1
WEIGH_ARGS ?=
PYTHON ?= python3

.PHONY: demo demos quick touched test test-rest test-all test-long test-mindspore test-kubernetes lint check lab bench trials hang-trials slow-trials run-trials node-trials mutate weigh weigh-some gpu-proof docs release clean

demo: $(VENV)/.installed
	@scripts/demo $(VENV)

# The recordings of `doctor demo`, made anew in the lab; a check that is newer than they are is undecided in them.
demos: $(VENV)/.ready
	@scripts/system-packages
	$(BIN)/python -m tests.lab record
	$(BIN)/python -m tests.lab.transcript

# The inner loop: about a minute on free cores, without root or system packages.
quick: $(VENV)/.tested
	$(BIN)/python -m pytest -q -n auto --dist worksteal --capture=sys --hypothesis-profile=quick -m "not slow" tests/unit $(PYTEST_ARGS)

# The tests that the changes since BASE affect: the folders that mirror the changed files, and the tests that name them.
touched: $(VENV)/.ready
	@scripts/system-packages
	@$(BIN)/python -m tests.touched $(BASE) $(PYTEST_ARGS)

# Every unit test, and the main fault of each command on real hosts.
test: $(VENV)/.ready
	@scripts/system-packages
	@scripts/test $(BIN)/python main $(PYTEST_ARGS)

# What `make test` leaves out; after both, every check has found its fault.
test-rest: $(VENV)/.ready .venv-release/.installed
	@scripts/system-packages
	@scripts/test $(BIN)/python rest $(PYTEST_ARGS)

test-all: test
	@$(MAKE) --no-print-directory test-rest
	@$(MAKE) --no-print-directory weigh-some

# Every test, further variants of faults that are already covered, and the tests of the lab itself.
test-long: $(VENV)/.ready
	@scripts/system-packages
	@scripts/test $(BIN)/python long $(PYTEST_ARGS)

# The smoke run with the real MindSpore, in an environment of its own (2.8 GB). MINDSPORE=optional: go on without it.
test-mindspore: $(VENV)/.ready
	@scripts/test-mindspore .venv-mindspore $(BIN)/python $(MINDSPORE)

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The whole gate. The tests build the wheel and try it in a clean environment.
check: lint test-all

lab: $(VENV)/.ready
	@scripts/system-packages
	$(BIN)/python -m tests.lab demo

bench: $(VENV)/.ready
	@scripts/system-packages bench
	$(BIN)/python -m benchmarks.peers
	$(BIN)/python -m benchmarks.smoke
	@if [ -e .venv-mindspore/.installed ]; then \
	  $(BIN)/python -m benchmarks.smoke --framework mindspore --python $(CURDIR)/.venv-mindspore/bin/python; \
	else echo "Without MindSpore (make test-mindspore installs it): msrun is left out."; fi
	$(BIN)/python -m benchmarks.accept
	$(BIN)/python -m benchmarks.preflight
	$(BIN)/python -m benchmarks.hang
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.explain
	$(BIN)/python -m benchmarks.replay
	$(BIN)/python -m pip install --quiet "asyncssh>=2.17,<3"
	$(BIN)/python -m benchmarks.thousands
	$(BIN)/python -m benchmarks.history

# The ways into pods, tried with a cluster: KUBECONFIG names it, and CLUSTER_DOCTOR_PODS pods of it (app=train).
test-kubernetes: $(VENV)/.ready
	@[ -n "$(CLUSTER_DOCTOR_PODS)" ] || { echo "Name pods: make test-kubernetes CLUSTER_DOCTOR_PODS=app=train"; exit 2; }
	CLUSTER_DOCTOR_PODS="$(CLUSTER_DOCTOR_PODS)" CLUSTER_DOCTOR_NAMESPACE="$(CLUSTER_DOCTOR_NAMESPACE)" \
	  $(BIN)/python -m pytest -q tests/process/transport/pods/test_any_cluster.py

# Every fault of the smoke run, many times, in the lab. It takes an hour or two, and goes on where it was cut short;
# TRIALS_ARGS selects a part.
trials: $(VENV)/.ready
	@scripts/system-packages
	$(BIN)/python -m tests.trials $(TRIALS_ARGS)

# Every fault of a hanging job and healthy work, many times, with real torchrun, mpirun, srun and frameworks. It takes
# hours, and goes on where it was cut short; TRIALS_ARGS selects a part.
hang-trials: $(VENV)/.ready
	@scripts/system-packages
	@scripts/hang-frameworks .venv-frameworks $(BIN)/python
	$(BIN)/python -m tests.trials.hang $(TRIALS_ARGS)

# Every fault of a slow job, many times, in the lab. A run that was cut short goes on; TRIALS_ARGS selects a part.
slow-trials: $(VENV)/.ready
	@scripts/system-packages
	$(BIN)/python -m tests.trials.slow $(TRIALS_ARGS)

# A training under `doctor run` on this machine, with each fault and a killed doctor, many times. A run that was cut short
# goes on; TRIALS_ARGS selects a part.
run-trials: $(VENV)/.ready
	$(BIN)/python -m tests.trials.command $(TRIALS_ARGS)

# The exam `node` on sound hosts in every situation, many times; docs/proof/node.md is its page. It takes half an hour,
# and goes on where it was cut short.
node-trials: $(VENV)/.ready
	@scripts/system-packages
	$(BIN)/python -m tests.trials.node $(TRIALS_ARGS)

# Drawn changes of the sources, each asked by the tests that belong to it; tests/mutate/alive.md is the page of those
# that no test notices (MUTATE_ARGS=--page writes it). It takes an hour or two, and goes on where it was cut short.
mutate: $(VENV)/.ready
	@scripts/system-packages
	$(BIN)/python -m tests.mutate $(MUTATE_ARGS)

# Each condition of the judges, switched off alone: which answers to the exam of foreign logs and jobs change. It takes hours,
# and goes on where it was cut short.
weigh: $(VENV)/.ready
	for judge in logs hang slow; do $(BIN)/python -m tests.exam --weigh doctor/$$judge/judge $(WEIGH_ARGS) || exit; done

# A few conditions, drawn at random, as a part of `make test-all`: a dozen seconds.
weigh-some: $(VENV)/.ready
	@kept=$$(mktemp) && trap 'rm -f "$$kept"' EXIT && \
	  $(BIN)/python -m tests.exam --weigh doctor/logs/judge --draw 4 --seed "$$(date +%j)" --file "$$kept"

# What a machine with NVIDIA GPUs can prove: gpu-proof.md and its recording. PYTHON needs torch with CUDA.
gpu-proof: $(VENV)/.tested
	$(BIN)/python -m tests.gpu_proof --python $(PYTHON) $(PROOF_ARGS)

# The site of docs/ in site/, in English and Chinese, with a page for each check; site/index.html opens without a server.
# The index of the search is written again, since the one for use without a server lacks what the second language adds.
docs: .venv-docs/.installed
	.venv-docs/bin/python scripts/docs_pages.py build/docs
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict
	(printf 'var __index = '; cat site/search/search_index.json) >site/search/search_index.js

# Everything of a version, in release/VERSION/ (docs/releasing.md): wheel, sdist, single files, checksums, the list of what
# is inside, the manual page, completions and the site. It refuses a tree that is not ready, and leaves nothing half-made.
release:
	@$(PYTHON) scripts/release.py $(VENV)

.venv-release/.installed: pyproject.toml scripts/venv
	scripts/venv .venv-release
	.venv-release/bin/python -m pip install -q -e '.[release]'
	touch $@

.venv-docs/.installed: pyproject.toml scripts/venv
	scripts/venv .venv-docs
	.venv-docs/bin/python -m pip install -q -e '.[docs]'
	touch $@

# Packages are locked by their hashes (scripts/lock writes the locks), torch by its version.
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
	rm -rf $(VENV) .venv-mindspore .venv-frameworks .venv-docs .venv-release build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
