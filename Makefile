# Two commands: `make run` starts a broker, `make test` proves it. Works with GNU make 3.81 and newer.
#
# .venv holds everything that is installed; .make holds stamps named after the sources' checksum, so that a second
# `make run` starts at once and an edited source is built again, whatever the files' times say.

PYTHON ?= python3
ARGS ?=
# How many processes share the tests, unless WORKERS says so; 0 is pytest alone, for a debugger. The pure ones keep a
# core busy each; the others often wait for a broker, for a takeover or for Spark, so for them there are two more.
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
PURE_WORKERS := $(or $(WORKERS),$(CORES))
ALL_WORKERS := $(or $(WORKERS),$(shell expr $(CORES) + 2))
BIN := .venv/bin
# Every worker takes whole files, in the order of tests/conftest.py.
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder

SUM := $(shell find src setup.py pyproject.toml -type f ! -path '*.egg-info/*' ! -name '*.pyc' ! -name '*.so' ! -name _compiled.py \
	| LC_ALL=C sort | xargs cksum | cksum | cut -d' ' -f1)
PACKAGE := .make/package-$(SUM)
TESTED := .make/tested-$(SUM)
# What checks and tests are run with, whatever the sources are: an edited source is checked without compiling it.
TOOLS := .make/tools-$(shell cksum <pyproject.toml | cut -d' ' -f1)
BENCHED := .make/benched-$(SUM)
SHOWN := .make/shown-$(SUM)
PACKED := .make/packed-$(SUM)
DOCUMENTED := .make/documented-$(SUM)
# A Python named on the command line is honoured even when .venv is there already; else what is there is used.
ifneq ($(origin PYTHON),file)
PYTHON_STAMP := .make/python-$(shell echo '$(PYTHON)' | cksum | cut -d' ' -f1)
endif

.PHONY: run check test test-pure coverage mutants bench soak demo cluster docs dist lint types format help clean

help:
	@echo 'make run    install and compile the broker, and start it   (ARGS="--port 5673 --data-dir X", PYTHON=python3.12)'
	@echo 'make check  lint, types and the tests that need nothing, uncompiled: a good minute, for every edit'
	@echo 'make test   make check, then all tests, with everything they need   (ARGS="-k confirms", WORKERS=2)'
	@echo 'make bench  measure, beside RabbitMQ if Debian'"'"'s is installed, and write docs/benchmarks.md'
	@echo 'make soak   the long tests: crashes, differential, disk model, for hours   (ARGS="-k crash")'
	@echo 'make coverage  what uncompiled tests go through, beside the floor; part of make soak   (ARGS=--raise)'
	@echo 'make mutants  wrong programs that the pure tests take for right; part of make soak   (ARGS="confirms acks")'
	@echo 'make demo   a broker is killed, Spark loses nothing of it: two minutes, one picture'
	@echo 'make cluster  three nodes, three etcds, two clients and a live table   (ARGS=--break breaks the leader in every way)'
	@echo 'make docs   the documentation as a site, in ./site; every warning is an error   (ARGS=serve shows it while you edit)'
	@echo 'make dist   what a release uploads, in ./dist, built and checked; nothing is uploaded   (ARGS=--trial)'
	@echo 'make lint   ruff, and what nothing uses        make types  mypy --strict on src, tests and bench'
	@echo 'make format  ruff writes the layout'
	@echo 'make clean  remove what was built and installed (not ./data)'

run: $(PACKAGE)
	@exec $(BIN)/warren serve $(ARGS)

test: $(TESTED)
	@scripts/tools --check
	@$(MAKE) --no-print-directory check
	$(PYTEST) -n $(ALL_WORKERS) $(ARGS)

check: lint types test-pure

test-pure: $(TOOLS)
	WARREN_PURE=1 PYTHONPATH=$(CURDIR)/src $(PYTEST) -n $(PURE_WORKERS) -q -p no:schemathesis -m 'pure and not soak'

soak: $(TESTED) coverage
	$(BIN)/python -m pytest -m soak --timeout 0 $(ARGS)
	$(if $(ARGS),,$(BIN)/python scripts/mutants.py)

coverage: $(TOOLS)
	$(BIN)/python scripts/covered.py $(PURE_WORKERS) $(ARGS)

mutants: $(TOOLS)
	$(BIN)/python scripts/mutants.py $(ARGS)

bench: $(BENCHED)
	$(BIN)/python -m bench $(ARGS)

cluster: $(PACKAGE)
	@scripts/tools --etcd
	@PYTHONPATH=$(CURDIR) $(BIN)/python -m tests.cluster.show $(ARGS)

demo: $(SHOWN)
	@$(BIN)/warren demo $(ARGS)

docs: $(DOCUMENTED)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(or $(ARGS),build --strict --quiet)

dist: $(PACKED)
	@$(BIN)/python scripts/dist.py $(ARGS)

lint: $(TOOLS)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python scripts/dead.py

format: $(TOOLS)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(TOOLS)
	$(BIN)/mypy --strict src tests bench

$(PACKAGE): $(PYTHON_STAMP)
	@scripts/venv '$(PYTHON)' $(if $(PYTHON_STAMP),exact,any)
	@$(BIN)/python scripts/install.py $(SUM)
	@rm -f .make/package-*
	@touch $@

$(TESTED):
	@scripts/tools --install
	@$(MAKE) --no-print-directory $(PACKAGE)
	@$(BIN)/python scripts/install.py $(SUM) test spark lakehouse
	@$(BIN)/python scripts/spark_classes.py
	@rm -f .make/tested-*
	@touch $@

$(TOOLS):
	@$(MAKE) --no-print-directory $(TESTED)
	@rm -f .make/tools-*
	@touch $@

$(BENCHED): $(PACKAGE)
	@$(BIN)/python scripts/install.py $(SUM) bench
	@rm -f .make/benched-*
	@touch $@

$(SHOWN): $(PACKAGE)
	@scripts/tools --java
	@[ -e $(TESTED) ] || $(BIN)/python scripts/install.py $(SUM) spark
	@rm -f .make/shown-*
	@touch $@

$(DOCUMENTED): $(PACKAGE)
	@$(BIN)/python scripts/install.py $(SUM) docs
	@rm -f .make/documented-*
	@touch $@

$(PACKED): $(PACKAGE)
	@$(BIN)/python scripts/install.py $(SUM) dist
	@rm -f .make/packed-*
	@touch $@

.make/python-%:
	@mkdir -p .make
	@rm -f .make/python-*
	@touch $@

clean:
	rm -rf .venv .make build dist site src/*.egg-info tests/clients/node_modules
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
