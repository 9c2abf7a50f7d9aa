# Every target sets up what it needs in .venv and may be repeated.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Number of test processes. More than cores: tests mostly wait for disks, clocks and brokers.
JOBS   ?= 3
# Exact versions with hashes of everything the targets install; written by `make lock`.
LOCK   := requirements.lock
INSTALL := $(BIN)/python -m pip install -q --require-hashes --constraint $(LOCK)
GROUPS := build check test demo interop bench fuzz audit docs
SOURCES := pyproject.toml setup.py $(LOCK) $(wildcard src/ottla/records/*.p* src/ottla/wire/*.pyx src/ottla/queue/*.p* src/ottla/storage/*.px* src/ottla/broker/fast_path/*.px* src/ottla/spark/registry/*.pyx)
LONG_PIPELINE_TESTS := tests/lake/test_kills.py $(addprefix tests/spark/pipelines/,test_a_day.py test_faults.py test_merging_kills.py test_object_stores.py test_schedulers.py)

# Times in built archives: the date of the last commit.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 315532800)

.DEFAULT_GOAL := help
.PHONY: help run demo test unit check interop bench cluster-test pipeline-test simulate soak fuzz lock audit sbom docs sdist wheel try-wheel clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/installed  ## Start the broker
	$(BIN)/ottla serve

demo: $(VENV)/demo  ## Run a demo shop with three Spark pipelines and plot the results
	$(BIN)/python -m examples.shop $(ARGS)

test: $(VENV)/test  ## Run the tests that need only the Python package index (some also a JVM)
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

unit: $(VENV)/test  ## Run the fast part of the tests
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow" $(ARGS)

check: $(VENV)/check  ## Lint, types, import contracts and wording
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/phrases.py

interop: $(VENV)/interop  ## Test against Apache Kafka and foreign clients (needs Java 17+, mvn, Go, npm, cargo, kcat, chromium; see interop/README.md)
	$(BIN)/python -m pytest interop -n $(JOBS) $(ARGS)

bench: $(VENV)/bench  ## Run the benchmarks, and print the ratios
	$(BIN)/python -m bench $(ARGS)

cluster-test: $(VENV)/test  ## Fault tests of a cluster under load, and model tests of its rules (needs Java 17+)
	LONG_CLUSTER_TEST=1 MODEL_EXAMPLES=3000 $(BIN)/python -m pytest tests/cluster -n 1 $(ARGS)

pipeline-test: $(VENV)/test  ## Long tests of pipelines: a day of one, drivers killed KILLS times (default 20), real schedulers (needs Java 17+)
	SPARK_KILLS=$(or $(KILLS),20) LAKE_KILLS=1 SCHEDULERS=1 $(BIN)/python -m pytest $(LONG_PIPELINE_TESTS) -n 1 $(ARGS)

simulate: $(VENV)/test  ## Simulated clusters under random faults for SECONDS (default 60); a failing seed can be replayed (docs/simulation.md)
	$(BIN)/python -m tests.simulation --seconds $(or $(SECONDS),60) $(ARGS)

soak: $(VENV)/bench  ## Mixed load and restarts for SECONDS (default 600); fails if a guarantee is violated
	$(BIN)/python -m bench.soak --seconds $(or $(SECONDS),600) $(ARGS)

fuzz: $(VENV)/fuzz  ## Fuzz the record codec for SECONDS (default 60)
	$(BIN)/python -m fuzz $(or $(SECONDS),60)

docs: $(VENV)/docs  ## Build the documentation site into build/site, and check its links
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir build/site $(ARGS)

lock: $(VENV)/uv  ## Resolve all dependencies to their newest versions, into requirements.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade \
	  $(addprefix --group ,$(GROUPS)) --output-file $(LOCK) pyproject.toml

audit: $(VENV)/audit  ## Check the locked dependencies for known vulnerabilities, in the database of the package index or of SERVICE=osv
	@# Strict: a package that the database does not answer for must not count as checked.
	@$(BIN)/pip-audit --strict --disable-pip --require-hashes --vulnerability-service $(or $(SERVICE),pypi) --requirement $(LOCK) || {\
	  echo "make audit: failed. Unless vulnerabilities are listed above, the database did not answer and NOTHING WAS CHECKED\
	  (mirrors of the package index often do not serve it): try SERVICE=osv, or another network."; exit 1; }

sbom: $(VENV)/audit  ## Write build/sbom.json: a CycloneDX bill of materials of the broker and its dependencies
	$(PYTHON) -m venv --clear --without-pip build/sbom-venv
	$(subst pip install,pip --python build/sbom-venv install,$(INSTALL)) --requirement $(VENV)/dependencies
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
	  --output-file build/sbom.json build/sbom-venv

sdist: $(VENV)/release  ## Build the source distribution in dist/; the same commit gives the same bytes
	rm -rf build/sdist dist/*.tar.gz && mkdir -p build/sdist dist
	$(BIN)/python -c 'from setuptools import build_meta; build_meta.build_sdist("build/sdist")' > build/sdist/log 2>&1 || { cat build/sdist/log; exit 1; }
	$(BIN)/python tools/normalize_sdist.py build/sdist/*.tar.gz dist
	$(BIN)/twine check --strict dist/*.tar.gz

# From the source distribution, which so must be complete. Without debug information, which has the paths of this machine.
wheel: sdist  ## Build a wheel for this Python and platform in dist/; cibuildwheel builds all (RELEASING.md)
	rm -rf build/wheel && mkdir -p build/wheel && tar -xf dist/*.tar.gz -C build/wheel --strip-components 1
	cd build/wheel && CFLAGS="-g0" ../../$(BIN)/python -m pip wheel -q --no-deps --no-build-isolation --wheel-dir ../../dist .
	$(BIN)/twine check --strict dist/*.whl

try-wheel: wheel  ## Install the wheel in a fresh environment without a compiler, and run the examples of README and tutorial, timed
	$(BIN)/python tools/try_wheel.py dist/*.whl

clean:  ## Remove everything the targets created
	rm -rf $(VENV) build dist .interop src/*.egg-info src/ottla/*/*.so src/ottla/*/*/*.so

$(VENV)/pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/uv: $(VENV)/pip
	$(BIN)/python -m pip install -q --group lock
	@touch $@

$(VENV)/release: $(VENV)/installed
	$(BIN)/python -m pip install -q --group release
	@touch $@

$(VENV)/dependencies: $(VENV)/pip pyproject.toml
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > $@

# pip cannot hash a folder: the dependencies are installed with hashes, then the package alone.
$(VENV)/installed: $(VENV)/dependencies $(SOURCES)
	$(INSTALL) --group build --requirement $<
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation --editable .
	@touch $@

$(addprefix $(VENV)/,$(filter-out build,$(GROUPS))): $(VENV)/%: $(VENV)/installed
	$(INSTALL) --group $*
	@touch $@
