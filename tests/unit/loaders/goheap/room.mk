# Unit tests of loaders/goheap, and what shows a live process's buckets to the end-to-end tests.
OBJECTS += $(B)/obj/tests/unit/loaders/goheap/read.o
$(B)/tests/goheap_read: $(B)/obj/tests/unit/loaders/goheap/read.o $(patsubst %,$(B)/lib/%.a,buckets host image base)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) -o $@ $^
workloads: $(B)/tests/goheap_read
