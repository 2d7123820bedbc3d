# Tests of the store, and what makes stores for everybody's tests: makestore and plantstore ones of known contents, putstore
# what its input says.
MAKERS := $(patsubst %,$(B)/tests/%,makestore putstore plantstore countload)
$(MAKERS): $(B)/tests/%: $(B)/obj/tests/workloads/%.o $(B)/lib/store.a $(B)/lib/base.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lsqlite3 -lzstd -lz -ljansson -lpthread -lm
OBJECTS += $(patsubst $(B)/tests/%,$(B)/obj/tests/workloads/%.o,$(MAKERS))
workloads: $(MAKERS)
all: $(wildcard $(MAKERS)) # they hold the schema: those made once follow it

$(eval $(call archive,store_fixture,tests/unit/schema/store/fixture.c))
STORE_TESTS := $(wildcard tests/unit/schema/store/*/*_test.c)
$(foreach t,$(STORE_TESTS),$(eval $(call unit_test,store_$(basename $(notdir $t)),$t,store_fixture store base,-lsqlite3 -lz -lpthread -lm)))

# twelve writers for a minute, their commits timed (on a machine that nothing else uses); 1000 writers killed, and the sealer 1000 times
.PHONY: long-crowd
# the unit tests that are shorter every day
CROWD_SOAKS := $(foreach t,seal choice retention,$(B)/tests/unit/store_$(t)_test) $(foreach t,diff_nodes l7_accounts index_oracle,$(B)/tests/unit/$(t)_test)
long-crowd: $(B)/tests/unit/store_crowd_test $(CROWD_SOAKS)
	@CROWD_SECONDS=60 CROWD_KILLS=667 CROWD_P99_MS=10 $(PYTHON) tests/run.py --results $(RESULTS)/crowd --timeout 400 $<
	@SONDE_SOAK=1 $(PYTHON) tests/run.py --results $(RESULTS)/crowd-soak --timeout 300 $(CROWD_SOAKS)
