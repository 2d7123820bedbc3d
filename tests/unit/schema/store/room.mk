# Tests of the store, and makestore, which makes a store of known contents for everybody's tests.
$(B)/tests/makestore: $(B)/obj/tests/workloads/makestore.o $(B)/lib/store.a $(B)/lib/base.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lsqlite3 -lpthread
OBJECTS += $(B)/obj/tests/workloads/makestore.o
workloads: $(B)/tests/makestore

$(eval $(call archive,store_fixture,tests/unit/schema/store/fixture.c))
$(eval $(call unit_test,store_dict_test,tests/unit/schema/store/dict_test.c,store base,-lsqlite3 -lpthread))
$(foreach t,choice writer reader crowd inlined relabel,$(eval $(call unit_test,store_$(t)_test,tests/unit/schema/store/$(t)_test.c,store_fixture store base,-lsqlite3 -lpthread)))
