# Unit tests of loaders/goheap, and what shows a live process's buckets to the end-to-end tests.
OBJECTS += $(B)/obj/tests/unit/loaders/goheap/read.o
$(B)/tests/goheap_read: $(B)/obj/tests/unit/loaders/goheap/read.o $(patsubst %,$(B)/lib/%.a,buckets host image base)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) -o $@ $^
$(eval $(call unit_test,goheap_site_test,tests/unit/loaders/goheap/site_test.c $(addprefix loaders/goheap/,site.c pressure.c),\
  buckets host image base,))
workloads: $(B)/tests/goheap_read
