# Unit tests of loaders/goheap, and what shows a live process's buckets to the end-to-end tests.
$(foreach t,buckets hostile,$(eval $(call unit_test,goheap_$(t)_test,tests/unit/loaders/goheap/$(t)_test.c,buckets image base,)))
OBJECTS += $(B)/obj/tests/unit/loaders/goheap/read.o
$(B)/tests/goheap_read: $(B)/obj/tests/unit/loaders/goheap/read.o $(patsubst %,$(B)/lib/%.a,buckets host image base)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) -o $@ $^
$(eval $(call unit_test,goheap_site_test,tests/unit/loaders/goheap/site_test.c $(addprefix loaders/goheap/,site.c pressure.c),\
  buckets host image base,))
$(eval $(call unit_test,goheap_force_test,tests/unit/loaders/goheap/force_test.c loaders/goheap/force.c,host image base,))
workloads: $(B)/tests/goheap_read

# Go's profiles as read from outside, compared with the program's own, with versions of Go from other suites, in every form: two
# versions by turns, and Debian 12's; GO_VERSIONS="1.15 1.27", or all.
.PHONY: long-goheap
long-goheap: all workloads
	@SONDE_GO_MATRIX=1 SONDE_GO_VERSIONS="$(GO_VERSIONS)" $(PYTEST) $(E2E)/heap/test_goheap_exact.py -k programs_own --junitxml=$(RESULTS)/goheap.xml
