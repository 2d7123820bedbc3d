# tests/rows: rows beside readelf's: ten libraries; SONDE_ROWS=300, as much of this machine as goes into 300 s; -full: all.
.PHONY: check-rows check-rows-full
check-rows: $(B)/bin/sonde-index $(B)/tests/rowcost
	@$(PYTEST) tests/rows --junitxml=$(RESULTS)/rows.xml

check-rows-full: $(B)/bin/sonde-index $(B)/tests/rowcost
	@SONDE_ROWS=full $(PYTEST) tests/rows --junitxml=$(RESULTS)/rows.xml

OBJECTS += $(B)/obj/tests/rows/rowcost.o
$(B)/tests/rowcost: $(B)/obj/tests/rows/rowcost.o $(patsubst %,$(B)/lib/%.a,index image base)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(INDEX_LIBS)
