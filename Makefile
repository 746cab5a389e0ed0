# Commands for developers. Files are written to .venv, build and the caches that `make clean` removes, nowhere else.

PYTHON ?= python3
# Where ROS 2 comes from: wheels (PyPI, Kilted), jazzy (the same of Jazzy), system (a sourced installation), none (library and
# command line only).
# Wheels exist for Linux on x86-64. Next to a sourced installation they would be a second, conflicting ROS.
ROS ?= $(if $(ROS_DISTRO),system,$(if $(filter Linux-x86_64,$(shell uname -sm | tr ' ' -)),wheels,none))

BIN := .venv/bin
# Modules are compiled at their first import.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile
# Empty files that record finished steps. Their names contain the kind of ROS, which must not change in a .venv.
DONE := .venv/.$(ROS)

# Parallel test processes, one more than processors: tests of nodes wait most of the time. (nproc would follow OMP_NUM_THREADS.)
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1)

# `make demo` needs little; `make env` installs everything else as well.
EXTRAS ?= docs,planning,plot,test,lint
WHEELS := $(if $(filter jazzy,$(ROS)),jazzy,$(if $(filter wheels,$(ROS)),ros))
comma := ,
# Versions to install: `make env LOCK=` takes the newest ones that setup.py allows, and so does an index that lacks some of these.
# They are Kilted's; a sourced installation has packages in its own versions.
LOCK ?= $(if $(filter wheels none,$(ROS)),.ci/lock.txt)
locked = $(if $(LOCK),$(PIP) --constraint $(LOCK) $(1) || { \
    echo '[env] not every version in $(LOCK) is available here: installing others'; $(PIP) $(1); },$(PIP) $(1))
# Folders are listed as well as files: the time of a folder changes when a file is deleted.
SOURCES := setup.py setup.cfg package.xml \
           $(shell find rnea_ros config launch resource urdf -not -path '*/__pycache__*' 2>/dev/null)

# A Python that uses the ROS wheels passes its library path to child processes, here to another environment.
ifdef _ROS_WHEELS_BOOTSTRAP_COMPLETE
unexport _ROS_WHEELS_BOOTSTRAP_COMPLETE LD_LIBRARY_PATH
endif
# A sourced ROS installation needs it; otherwise it would precede .venv.
ifneq ($(ROS),system)
unexport PYTHONPATH
endif

export RNEA_ROS_CACHE ?= $(CURDIR)/build/kernels

.NOTPARALLEL:  # the steps share one .venv
.PHONY: help env package demo test campaign lint docs bench colcon matrix lock audit fuzz soak coverage mutate api wheels release clean

help:
	@echo 'make env      .venv with all dependencies, ROS 2 and this package (3 minutes, once)'
	@echo 'make demo     run a simulated robot and show its torques and torque rates (1 minute for the first run)'
	@echo 'make test     run ruff, mypy, codespell and all tests'
	@echo 'make campaign run all tests with ten times as many random robots, and the longest tests (1 hour)'
	@echo 'make lint     run ruff, mypy and codespell only'
	@echo 'make docs     build the documentation site in build/docs, gallery of examples included (2 minutes)'
	@echo 'make bench    measure speed beside other libraries (12 minutes, BENCH=--quick: 5)'
	@echo 'make matrix   run short tests on each installed Python, numpy, llvmlite and ROS 2, in fresh clones (MATRIX=--list: list them)'
	@echo 'make colcon   build and test all packages in a ROS 2 workspace'
	@echo 'make fuzz     feed random inputs to all readers (SECONDS=60, SEED=1, TARGET="urdf bag")'
	@echo 'make soak     run all nodes for hours with faults injected (HOURS=0.02, SEED=1)'
	@echo 'make lock     update the versions that `make env` installs (.ci/lock.txt)'
	@echo 'make audit    check these versions for known vulnerabilities'
	@echo 'make coverage measure line and branch coverage, nodes included, in build/coverage (COVERAGE=test/trajectory: of these tests)'
	@echo 'make mutate   test whether the tests detect small faults in the core (10 minutes, MUTATE=--count=100: more)'
	@echo 'make api      list changes of public names since the last tag (API=COMMIT: since that commit)'
	@echo 'make wheels   build wheels that need no compiler in build/wheels, rnea_msgs for Kilted and Jazzy (DISTRIBUTIONS=kilted: one)'
	@echo 'make release  archive the last commit for bloom in build/release'
	@echo 'make clean    remove everything that make created, .venv included'
	@echo
	@echo 'PYTHON=$(PYTHON)   interpreter for .venv'
	@echo 'ROS=$(ROS)   source of ROS 2: wheels (PyPI, Kilted), jazzy (PyPI), system (sourced installation), none (no nodes)'

env: $(DONE)-package $(DONE)-requirements $(DONE)-window
package: $(DONE)-package  # for `make demo`: without Pinocchio, MuJoCo, Sphinx, Qt

$(DONE)-venv:
	@.ci/prerequisites $(PYTHON) $(ROS)
	@echo "[env] creating .venv: $$($(PYTHON) --version), ROS 2 from: $(ROS) (5 s)"
	@$(PYTHON) -m venv $(if $(filter system,$(ROS)),--system-site-packages) .venv
	@$(PIP) 'setuptools<80' wheel
	@touch $@

# Without wheels, the messages are those of a sourced installation.
define ASK
$(BIN)/python -c 'import rnea_msgs.msg' 2>/dev/null || { \
    echo '[env] rnea_msgs is not in this environment: the nodes cannot start, tests that need them are skipped.'; \
    echo '      With ROS 2 sourced: make colcon && . build/colcon/install/rnea_msgs/share/rnea_msgs/package.sh'; }
endef

# The messages are compiled while pip installs the other packages.
MESSAGES := $(if $(WHEELS),$(shell find rnea_msgs -type f) .ci/messages)
messages = .ci/messages $(1) '$(LOCK)' $(if $(filter jazzy,$(ROS)),rnea_msgs/jazzy.txt)
$(DONE)-basic: setup.py $(LOCK) $(MESSAGES) $(DONE)-venv
	@$(if $(WHEELS),$(call messages,prepare))
	@$(if $(WHEELS),$(call messages,compile) & compiler=$$!;) \
	    echo '[env] installing what the demo needs (20 s, 0.5 GB on disk)'; \
	    { $(call locked,--no-build-isolation '.[$(if $(WHEELS),$(WHEELS)$(comma))plot]'); } && $(if $(WHEELS),wait $$compiler && $(call messages,install),$(ASK))
	@touch $@

$(DONE)-requirements: setup.py $(LOCK) $(DONE)-basic
	@echo '[env] installing Python packages for tests, docs and planning: $(EXTRAS) (1 to 4 minutes, 2 GB on disk)'
	@$(call locked,'.[$(if $(WHEELS),$(WHEELS)$(comma))$(EXTRAS)]')
	@touch $@

$(DONE)-package: $(SOURCES) $(DONE)-basic
	@echo '[env] installing rnea_ros (5 s)'
	@rm -rf build/lib  # setuptools would install deleted files from there
	@$(PIP) --no-deps --no-build-isolation .
	@touch $@

$(DONE)-window: $(shell find rnea_rqt -not -path '*/__pycache__*' -not -path 'rnea_rqt/test*') $(DONE)-requirements
	@echo '[env] installing Qt and rnea_rqt (10 s)'
	@rm -rf rnea_rqt/build
	@$(call locked,--no-build-isolation './rnea_rqt[qt]')
	@$(PIP) --no-build-isolation --no-deps --force-reinstall ./rnea_rqt
	@touch $@

$(DONE)-generators: rnea_msgs/pyproject.toml rnea_msgs/jazzy.txt $(DONE)-basic  # for colcon
	@$(call messages,generators)
	@touch $@

demo: package
	@$(BIN)/rnea demo

LINT := $(BIN)/ruff check && $(BIN)/mypy && $(BIN)/codespell
lint: env
	@echo '[lint] ruff, mypy, codespell (25 s)'
	@$(LINT)

# Each file runs in one process, since its tests share nodes; test/conftest.py sorts the longest files first.
# PYTEST_ADDOPTS adds options, as --durations=30. RNEA_TEST_ACCOUNT=FILE writes the processor time of each test file.
PYTEST := $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder

# Lint uses one processor, beside the tests. Meanwhile the other one compiles them, which each process of pytest would do for itself.
test: env
	@echo '[test] ruff, mypy, codespell, and pytest, $(JOBS) at a time'
	@{ $(LINT); } & lint=$$!; $(BIN)/python -m pytest --collect-only --quiet > /dev/null; \
	    $(PYTEST); failed=$$?; wait $$lint || { echo 'make lint fails, see above'; exit 1; }; exit $$failed

# Ten times as many random robots and samples, and the tests that take too long for every change.
campaign: env
	@RNEA_TEST_SEEDS=10 $(PYTEST) --timeout 3600

docs: env
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --jobs auto --conf-dir docs . build/docs
	@echo 'build/docs/index.html'

bench: env
	@$(call locked,'.[bench]')
	@OMP_NUM_THREADS=1 $(BIN)/python benchmark/run.py $(BENCH)

SECONDS ?= 60
SEED ?= 1
fuzz: env
	@PYTHONPATH=.:test $(BIN)/python -m fuzz.run --seconds $(SECONDS) --seed $(SEED) $(if $(TARGET),--target $(TARGET))

HOURS ?= 0.02
soak: env
	@PYTHONPATH=.:test $(BIN)/python -m soak.run --hours $(HOURS) --seed $(SEED)

lock: $(DONE)-venv
	@.ci/lock

audit: $(DONE)-venv
	@.ci/audit

# `make test` runs the whole suite; this checks that the packages build, install and run as ROS packages.
COLCON_PYTEST_ARGS ?= $(addprefix test/,$(addsuffix .py,project/test_packaging nodes/test_commands))
# The controllers need ros2_control, which the wheels lack; test/controllers compiles them with stand-in headers.
CONTROLLERS := $(if $(wildcard $(addsuffix /share/controller_interface/package.xml,$(subst :, ,$(AMENT_PREFIX_PATH)))),rnea_controllers)
PACKAGES := . rnea_msgs rnea_rqt rnea_plugins $(CONTROLLERS)  # colcon does not search for packages inside a package
# Not in build, install and log, where a developer's workspace may be. A sourced ROS has its own colcon.
FOLDERS := --build-base build/colcon/build --install-base build/colcon/install
ifneq ($(ROS),system)
COLCON := VIRTUAL_ENV='$(CURDIR)/.venv' PATH="$(CURDIR)/$(BIN):$$PATH"
colcon: $(DONE)-colcon $(if $(WHEELS),$(DONE)-generators)
endif
COLCON += colcon --log-base build/colcon/log

colcon: env
	@echo '[colcon] building rnea_msgs, rnea_ros, rnea_rqt, rnea_plugins$(if $(CONTROLLERS), and rnea_controllers) (30 s)'
	@$(COLCON) build --base-paths $(PACKAGES) $(FOLDERS)
	@echo '[colcon] testing them'
	@$(subst build/colcon/log,build/colcon/log_window,$(COLCON)) test --base-paths $(PACKAGES) --packages-select rnea_rqt $(FOLDERS) \
	    --event-handlers console_direct+ & window=$$!; \
	    $(COLCON) test --base-paths $(PACKAGES) --packages-skip rnea_rqt $(FOLDERS) --event-handlers console_direct+ \
	    --pytest-args $(COLCON_PYTEST_ARGS) && wait $$window
	@$(COLCON) test-result --test-result-base build/colcon/build --all

$(DONE)-colcon: $(DONE)-venv
	@echo '[colcon] installing colcon (10 s)'
	@$(call locked,colcon-common-extensions)
	@touch $@

# Fresh clones in build/matrix, one after another (docs/platforms.md).
matrix:
	@$(PYTHON) .ci/matrix.py $(MATRIX)

coverage: env
	@$(PIP) coverage
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -q $(COVERAGE)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage html --quiet
	@$(BIN)/coverage report

mutate: env
	@$(BIN)/python .ci/mutate.py $(MUTATE)

api: $(DONE)-venv
	@$(PIP) griffe
	@$(BIN)/python .ci/api.py $(API)

DISTRIBUTIONS ?= kilted jazzy
wheels:
	@.ci/wheels $(PYTHON) $(DISTRIBUTIONS)

# colcon, rosdep and bloom do not search for packages inside a package.
VERSION = $(shell sed -n 's|.*<version>\(.*\)</version>|\1|p' package.xml)
release:
	@rm -rf build/release && mkdir -p build/release/rnea
	@git archive --prefix=rnea_ros/ HEAD . ':!rnea_msgs' ':!rnea_rqt' ':!rnea_controllers' ':!rnea_plugins' ':!lerobot_rnea' | tar --extract --directory build/release/rnea
	@git archive HEAD rnea_msgs rnea_rqt rnea_controllers rnea_plugins lerobot_rnea | tar --extract --directory build/release/rnea
	@tar --create --gzip --file build/release/rnea-$(VERSION).tar.gz --directory build/release rnea
	@echo 'build/release/rnea-$(VERSION).tar.gz'

clean:
	rm -rf .venv build docs/gallery docs/api/generated *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find rnea_ros launch test benchmark -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
