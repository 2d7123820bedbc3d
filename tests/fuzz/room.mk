# SPDX-License-Identifier: Apache-2.0
# tests/fuzz: every parser (or FUZZ_PART of them, 2/3: the second third) for FUZZ_SECONDS, two at a time, and the line coverage that this reached.
FUZZ_SECONDS ?= 120
FUZZ_PART    ?= 1/1
.PHONY: long-fuzz
long-fuzz:
	@$(MAKE) --no-print-directory FUZZ=1 B=build/fuzz fuzz-run RESULTS=$(RESULTS)/fuzz
ifdef FUZZ
.PHONY: fuzz-run
fuzz-run: fuzzers
	@$(PYTHON) tests/fuzz/run.py --results $(RESULTS) --seconds $(FUZZ_SECONDS) --part $(FUZZ_PART) $(FUZZERS)
endif
