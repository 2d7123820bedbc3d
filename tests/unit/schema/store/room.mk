# Tests of the store, and makestore, which makes a store of known contents for everybody's tests.
$(B)/tests/makestore: $(B)/obj/tests/workloads/makestore.o $(B)/lib/store.a $(B)/lib/base.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lsqlite3 -lpthread
OBJECTS += $(B)/obj/tests/workloads/makestore.o
workloads: $(B)/tests/makestore
