# Every target sets up what it needs in .venv and may be repeated.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# How many processes share the tests. More than there are cores: they wait for disks, clocks and brokers most of the time.
JOBS   ?= 3
# Exact versions with hashes of everything that any target installs; `make lock` writes it.
LOCK   := requirements.lock
INSTALL := $(BIN)/python -m pip install -q --require-hashes --constraint $(LOCK)
GROUPS := build check test demo interop bench fuzz audit
SOURCES := pyproject.toml setup.py $(LOCK) $(wildcard src/ottla/records/*.p* src/ottla/wire/*.pyx src/ottla/queue/*.p*)

.DEFAULT_GOAL := help
.PHONY: help run demo test check interop bench cluster-test simulate soak fuzz lock audit sbom clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/installed  ## Start the broker
	$(BIN)/ottla serve

demo: $(VENV)/demo  ## A shop, three pipelines on Spark, and a picture of what came of it
	$(BIN)/python -m examples.shop $(ARGS)

test: $(VENV)/test  ## Run every test that needs only the Python package index (and a JVM, where named)
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

check: $(VENV)/check  ## Lint, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

interop: $(VENV)/interop  ## Test against Apache Kafka and foreign clients (needs Java 17+, mvn, Go, npm, cargo, kcat, chromium; see interop/README.md)
	$(BIN)/python -m pytest interop -n $(JOBS) $(ARGS)

bench: $(VENV)/bench  ## Measure, and print the ratios
	$(BIN)/python -m bench $(ARGS)

cluster-test: $(VENV)/test  ## Every fault that a cluster must survive, under load, and the rules in every order (needs Java 17+)
	LONG_CLUSTER_TEST=1 MODEL_EXAMPLES=3000 $(BIN)/python -m pytest tests/cluster -n 1 $(ARGS)

simulate: $(VENV)/test  ## Simulated clusters under random faults for SECONDS (default 60); a failing seed can be replayed (docs/simulation.md)
	$(BIN)/python -m tests.simulation --seconds $(or $(SECONDS),60) $(ARGS)

soak: $(VENV)/bench  ## Mixed load and restarts for SECONDS (default 600); fails if a promise is broken
	$(BIN)/python -m bench.soak --seconds $(or $(SECONDS),600) $(ARGS)

fuzz: $(VENV)/fuzz  ## Fuzz the record codec for SECONDS (default 60)
	$(BIN)/python -m fuzz $(or $(SECONDS),60)

lock: $(VENV)/uv  ## Resolve every dependency anew (newest versions) into requirements.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade \
	  $(addprefix --group ,$(GROUPS)) --output-file $(LOCK) pyproject.toml

audit: $(VENV)/audit  ## Look the locked dependencies up in the database of known vulnerabilities
	$(BIN)/pip-audit --disable-pip --require-hashes --requirement $(LOCK)

sbom: $(VENV)/audit  ## Write build/sbom.json: a CycloneDX bill of materials of the broker and what it installs
	$(PYTHON) -m venv --clear --without-pip build/sbom-venv
	$(subst pip install,pip --python build/sbom-venv install,$(INSTALL)) --requirement $(VENV)/dependencies
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
	  --output-file build/sbom.json build/sbom-venv

clean:  ## Remove what the targets made
	rm -rf $(VENV) build .interop src/*.egg-info src/ottla/*/*.so src/ottla/*/*/*.so

$(VENV)/pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/uv: $(VENV)/pip
	$(BIN)/python -m pip install -q --group lock
	@touch $@

$(VENV)/dependencies: $(VENV)/pip pyproject.toml
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > $@

# pip cannot hash a folder: what the package needs is installed with hashes, then the package alone.
$(VENV)/installed: $(VENV)/dependencies $(SOURCES)
	$(INSTALL) --group build --requirement $<
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation --editable .
	@touch $@

$(addprefix $(VENV)/,$(filter-out build,$(GROUPS))): $(VENV)/%: $(VENV)/installed
	$(INSTALL) --group $*
	@touch $@
