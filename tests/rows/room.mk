# tests/rows: compared with readelf's: ten libraries; SONDE_ROWS=300, as much of this machine as goes into 300 s; -full: all.
ROWS_HELPERS := $(addprefix $(B)/tests/rows/,rowcost insnlen followed stepper)
.PHONY: check-rows long-rows
check-rows: $(B)/bin/sonde-index $(ROWS_HELPERS)
	@$(PYTEST) tests/rows --junitxml=$(RESULTS)/rows.xml

long-rows: $(B)/bin/sonde-index $(ROWS_HELPERS)
	@SONDE_ROWS=full $(PYTEST) tests/rows --junitxml=$(RESULTS)/rows.xml

OBJECTS += $(patsubst $(B)/tests/%,$(B)/obj/tests/%.o,$(ROWS_HELPERS))
$(ROWS_HELPERS): $(B)/tests/rows/%: $(B)/obj/tests/rows/%.o $(patsubst %,$(B)/lib/%.a,index image base)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(INDEX_LIBS)
