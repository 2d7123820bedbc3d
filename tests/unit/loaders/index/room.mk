# Unit tests of loaders/index. oracle_test compares with nm, readelf, go and rustc and skips what is not installed.
INDEX_TESTS := parsers rows cfi gorows golines gopart pypart pylayout phppart perlpart rubypart tlspart recordpart callsites v8part symset lineset dwline indexer child oracle
$(foreach t,$(INDEX_TESTS),$(eval $(call unit_test,index_$(t)_test,$(call tested,loaders/index,$(t)),index image base,$(INDEX_LIBS))))
# loaders/lib/sandbox as sonde-index uses it
$(eval $(call unit_test,index_sandbox_test,tests/unit/loaders/lib/sandbox/sandbox_test.c,index image base,$(INDEX_LIBS)))
# Go programs by single steps; the unwinder is that of the loaders.
$(eval $(call unit_test,index_gosteps_test,tests/unit/loaders/index/gosteps_test.c tests/unit/loaders/index/steps.c,index host image base,$(INDEX_LIBS)))
# Go's tables with versions of Go from other suites: two by turns, GO_VERSIONS="1.15 1.27" or all.
GO_VERSIONS ?=
GO_TESTS := $(foreach t,gorows golines gopart gosteps,$(B)/tests/unit/index_$(t)_test)
.PHONY: long-go
long-go: $(GO_TESTS)
	@SONDE_GO_VERSIONS="$(GO_VERSIONS)" $(PYTHON) tests/unit/loaders/index/gomatrix.py --results $(RESULTS)/go $(GO_TESTS)
