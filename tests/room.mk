# SPDX-License-Identifier: Apache-2.0
#
# tests/: how each kind of test is run. Every kind leaves JUnit XML under $(RESULTS)/KIND; tests/summary.py adds it up.
# Debian's own python3 is named by its path: another one on the path has no pytest of ours.
#
#   make check              the everyday tests: a few minutes
#   make long-NAME          one of the long ones; tests/long.tsv has them all, with the paths that each one looks at
#   make long-for-change    those whose paths differ from BASE (default: origin/main, else the commit before)
#   make long               all of them, one after the other

RESULTS ?= $(B)/results
PYTHON  ?= /usr/bin/python3
PYTEST  := PYTHONDONTWRITEBYTECODE=1 B=$(B) $(PYTHON) -m pytest -p no:cacheprovider -q
E2E     ?= tests/e2e
# end-to-end tests side by side, a file at a time (python3-pytest-xdist; without it one after the other): three for two CPUs, because most of a test is waiting. Those marked `alone` measure, and have the machine for themselves
# (tests/e2e/conftest.py). WORKERS=0: none side by side
WORKERS ?= 3
SIDE_BY_SIDE = $(if $(filter-out 0,$(WORKERS)),$(shell $(PYTHON) -c 'import xdist' 2>/dev/null && printf '%s' '-n $(WORKERS) --dist loadfile'))

.PHONY: check check-unit check-layout check-e2e check-clang workloads score

# the everyday tests: all kinds run, whatever fails before, and a kind that leaves no result is one failed case. Those that use
# the CPU come first, side by side (make -j2). The unit tests run with ASan and UBSan
since = @echo "check: $(1)$(if $(CI_BEGAN), after $$(($$(date +%s) - $(CI_BEGAN))) s)"
check: all workloads
	$(call since,built)
	@rm -rf $(RESULTS)/check
	@mkdir -p $(RESULTS)/check
	-@$(MAKE) --no-print-directory -k check-unit check-layout check-rows RESULTS=$(RESULTS)/check
	$(call since,unit tests and layout)
	-@$(MAKE) --no-print-directory check-e2e RESULTS=$(RESULTS)/check
	$(call since,end-to-end tests)
	@for kind in unit layout rows e2e; do \
		find $(RESULTS)/check/$$kind $(RESULTS)/check/$$kind.xml -name '*.xml' 2>/dev/null | grep -q . || \
			$(PYTHON) tests/run.py --results $(RESULTS)/check --step $$kind-tests -- sh -c "echo 'no result: they were not built'; exit 1" || :; \
	done
	@$(PYTHON) tests/summary.py $(RESULTS)/check

ifdef SAN
check-unit: unit-tests
	@$(PYTHON) tests/run.py --results $(RESULTS)/unit $(UNIT_TESTS)
else
check-unit:
	@$(MAKE) --no-print-directory SAN=1 B=$(B)/san check-unit RESULTS=$(RESULTS)
endif

check-layout: all
	@$(PYTEST) tests/check $(SIDE_BY_SIDE) --junitxml=$(RESULTS)/layout.xml

check-e2e: all workloads $(B)/tests/makepage
	@$(PYTEST) $(E2E) $(SIDE_BY_SIDE) -m "not docker and not soak and not live and not page and not long and not tls" --junitxml=$(RESULTS)/e2e.xml

# all sources by the other compiler, nothing linked
check-clang:
	@$(MAKE) --no-print-directory CC=clang B=$(B)/clang CFLAGS='-O0 -fsyntax-only' WERROR=1 objects

# the questions of a newcomer's first hour, one script each: SCORE="4 9" asks some of them
SCORE ?=
score: all workloads unit-tests
	@B=$(B) $(PYTHON) tests/score/run.py $(SCORE)

# --- the long ones ---

LONG := $(shell sed -n 's/^\([a-z][a-z0-9-]*\)\t.*/long-\1/p' tests/long.tsv)
.PHONY: long long-for-change $(LONG)
long:
	@$(PYTHON) tests/long.py --results $(RESULTS)/long all
BASE ?=
long-for-change:
	@$(PYTHON) tests/long.py --results $(RESULTS)/long change $(BASE)

# what takes seconds and more on the real kernel: comparisons with perf, two captures at once, kills, debuginfod, crowds of processes
long-capture: all workloads
	@$(PYTEST) $(E2E) -m "long and not docker and not soak and not live and not page and not tls" --durations=5 --junitxml=$(RESULTS)/long-capture.xml

# requests of disks, who changed files, deleted files that are open
long-disk: all workloads
	@$(PYTEST) $(E2E)/disk --durations=5 --junitxml=$(RESULTS)/long-disk.xml

# probes: runtimes, libraries in versions, containers, the table of bcc's tools, a thousand that come and go
long-probe: all workloads
	@$(PYTEST) $(E2E)/probe -rs --durations=5 --junitxml=$(RESULTS)/long-probe.xml

# memory by line in each language, what is growth and what is not, kills and waits for memory, all pages of the host
long-mem: all workloads
	@$(PYTEST) $(E2E)/heap/test_mem*.py --durations=5 --junitxml=$(RESULTS)/long-mem.xml

# Java programs of each JDK recorded from inside; loaders killed in each state; CYCLES of attach and stop (default 100)
long-java: all workloads
	@CYCLES=$(CYCLES) $(PYTEST) $(E2E)/java --durations=12 --junitxml=$(RESULTS)/long-java.xml

# a family that is made as CONTRIBUTING.md says, in a copy of the tree: built, recorded, asked, archived
long-demo: all workloads
	@$(PYTEST) $(E2E)/capture/test_demo_family.py --durations=5 --junitxml=$(RESULTS)/long-demo.xml

# in real containers: the tests start their own engine and end it
long-docker: all workloads
	@$(PYTEST) $(E2E) -m docker --junitxml=$(RESULTS)/long-docker.xml

# Debian's own servers, interpreters and compilers under load: do their stacks reach a root, are their waits right?
LIVE ?= $(E2E)
long-live: all unit-tests workloads
	@$(PYTEST) $(LIVE) -m live --durations=5 --junitxml=$(RESULTS)/long-live.xml

# requests inside TLS, of programs from elsewhere, and what attaching and detaching probes does to them
long-tls: all workloads
	@SONDE_SOAK=1 $(PYTEST) $(E2E) -m tls --durations=5 --junitxml=$(RESULTS)/long-tls.xml

# explain --request beside what gunicorn, php-fpm, Java, PostgreSQL and MariaDB know that they waited for
long-explained: all workloads
	@$(PYTEST) $(E2E)/requests/test_request_explained.py -rs -s --junitxml=$(RESULTS)/long-explained.xml

# links of sonde trace below nginx, haproxy, Node, asyncio and Go, with up to 64 requests in flight: each is true
long-parents: all workloads
	@$(PYTEST) $(E2E)/traces/test_trace_parents.py -rs -s --junitxml=$(RESULTS)/long-parents.xml

# requests as sonde-l7 counts them, compared with what the servers themselves count: nginx, PostgreSQL, MariaDB, Redis, RabbitMQ, php-fpm, gRPC, ...
long-requests: all workloads
	@$(PYTEST) $(E2E)/requests/test_l7_servers.py $(E2E)/requests/test_l7_endures.py -rs --durations=5 --junitxml=$(RESULTS)/long-requests.xml


# an NVIDIA GPU, compared with what nvidia-smi says of it
long-gpu: all
	@$(PYTEST) $(E2E)/host/test_gpu_real.py -s --junitxml=$(RESULTS)/long-gpu.xml

# what sonde-export and sonde-push send, compared with what real engines and receivers have: Prometheus, ClickHouse; the Collector and Pyroscope's API, which are built from Go's modules here
long-export: all
	-@$(MAKE) --no-print-directory receivers
	@$(PYTEST) tests/e2e/export/test_export_engines.py tests/e2e/export/test_export_receivers.py tests/e2e/export/test_push.py -m long -rs --durations=5 --junitxml=$(RESULTS)/long-export.xml

# script frames of every interpreter that can be had, in samples and in pstack; servers in scripting languages under load
long-runtimes: all unit-tests workloads
	@$(PYTEST) $(E2E)/*/test_script_*.py $(E2E)/names/test_deep_scripts.py $(E2E)/names/test_java_frames.py $(E2E)/names/test_node_frames.py $(E2E)/names/test_jit_names.py $(E2E)/names/test_python_frames.py $(E2E)/*/test_pstack_[jnpr]*.py -m live -s \
	    --durations=5 --junitxml=$(RESULTS)/long-runtimes.xml

# the flame graph page and the served page in a browser: every view against a recomputation, both themes, budgets with 100 000 nodes
long-page: all unit-tests workloads
	@$(PYTEST) tests/e2e/page/test_page*.py --durations=5 --junitxml=$(RESULTS)/long-page.xml

# sonde serve before clients that send anything, for SERVE_SECONDS
SERVE_SECONDS ?= 3600
long-serve: all workloads
	@SERVE_SECONDS=$(SERVE_SECONDS) $(PYTEST) $(E2E)/page/test_serve_hostile.py -s --junitxml=$(RESULTS)/long-serve.xml

# one sum for each kind and range, of hundreds of mixtures of good, archived, damaged and foreign files in one store and in two
long-sums: all workloads
	@SONDE_SOAK=1 $(PYTEST) $(E2E)/query/test_sums.py $(E2E)/store/test_days.py --durations=5 --junitxml=$(RESULTS)/long-sums.xml

# sonde mcp, asked by the clients that others wrote: PyPI's, and both of npm
long-mcp: all workloads
	@$(PYTEST) $(E2E)/mcp/test_mcp_clients.py -rs --durations=5 --junitxml=$(RESULTS)/long-mcp.xml

# profiles of other programs: recordings of each JDK on this host, and the test files of google/pprof, Pyroscope and speedscope
long-profiles: all workloads
	@$(PYTEST) $(E2E)/profiles/test_import.py $(E2E)/profiles/test_import_jfr.py $(E2E)/profiles/test_import_json.py $(E2E)/profiles/test_import_java.py \
	  $(E2E)/profiles/test_import_corpus.py $(E2E)/profiles/test_import_strangers.py -s --junitxml=$(RESULTS)/long-profiles.xml

# what `sonde diff` finds among noise, and what it must not find: fifty seeds, four hundred steady pairs
long-diff: all workloads
	@SONDE_SOAK=1 $(PYTEST) $(E2E)/query/test_diff.py -s -k "seeds or steady" --junitxml=$(RESULTS)/long-diff.xml

# what `sonde explain` says where nothing changed: two hundred pairs of a steady host, a hundred of a noisy one
long-explain: all workloads
	@SONDE_SOAK=1 $(PYTEST) $(E2E)/query/test_explain.py -s -k "as_before or noisy" --junitxml=$(RESULTS)/long-explain.xml

# why it was slow: incidents in a small service, as the loaders record them, and what `sonde explain` says; the figures are printed
long-incidents: all workloads
	@$(PYTEST) $(E2E)/query/test_explain_incidents.py -s -rs --junitxml=$(RESULTS)/long-incidents.xml

# the same tests at their full length; SOAK chooses among them as pytest's -k does
SOAK ?=
long-soak: all workloads
	@SONDE_SOAK=1 $(PYTEST) $(E2E) -m "not docker" $(if $(SOAK),-k "$(SOAK)") --durations=10 --junitxml=$(RESULTS)/long-soak.xml

# months in minutes: sonded, its children and its disk treated badly (SOAK_SECONDS=180 for a short one)
SOAK_SECONDS ?= 600
long-sonded: all workloads
	@SONDE_SOAK_SECONDS=$(SOAK_SECONDS) $(PYTEST) $(E2E)/sonded/test_soak.py $(E2E)/sonded/test_flight.py $(E2E)/sonded/test_flight_triggers.py -s --junitxml=$(RESULTS)/long-sonded.xml

# a host at a load of sixty: what the first recording of it says, beside what the load knows and perf counts
DROWNING_SECONDS ?= 600
long-drowning: all
	@DROWNING_SECONDS=$(DROWNING_SECONDS) $(PYTEST) tests/drowning -rs --durations=5 --junitxml=$(RESULTS)/long-drowning.xml

# a day in a homelab: real containers, some of which misbehave, kills by a seed, then every query compared with what the kernel and
# Docker know (HOMELAB_MINUTES=1: the short form; HOMELAB_KEEP=DIR leaves store, truth and answers there)
HOMELAB_MINUTES ?= 15
long-homelab: all
	@HOMELAB_MINUTES=$(HOMELAB_MINUTES) $(PYTEST) tests/homelab -s --junitxml=$(RESULTS)/long-homelab.xml

# README's two command lines on a new, empty Debian
long-fresh:
	@scripts/check-fresh.sh

# the package, the tarball and the image on new systems: Debian 11 to 13, Ubuntu 20.04 and 24.04 (UBUNTU_KEYRING names its keys),
# musl. PACKAGE chooses among them as pytest's -k does
PACKAGE ?=
long-package: release workloads
	@$(PYTEST) tests/fresh -s $(if $(PACKAGE),-k "$(PACKAGE)") --durations=5 --junitxml=$(RESULTS)/long-package.xml

# programs and unit tests, optimised, by both compilers
long-compilers:
	@$(MAKE) --no-print-directory CC=clang B=$(B)/clang-whole WERROR=1 all unit-tests
	@$(MAKE) --no-print-directory CC=gcc B=$(B)/gcc WERROR=1 all unit-tests
	@$(PYTHON) tests/run.py --results $(RESULTS)/unit-plain $(patsubst $(B)/%,$(B)/gcc/%,$(UNIT_TESTS))
