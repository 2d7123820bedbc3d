# Unit tests of the query tool's frame. What leaves sonde (pages, pprof) is tested from tests/unit/output.
TOOL_LIBS := -lsqlite3 -ljansson -lz -lm
$(eval $(call unit_test,endings_test,tests/unit/tools/endings_test.c,tools store image base,$(TOOL_LIBS)))
$(eval $(call unit_test,when_test,tests/unit/tools/when_test.c,tools store image base,$(TOOL_LIBS)))
$(eval $(call unit_test,tool_options_test,tests/unit/tools/options_test.c,tools store image base,$(TOOL_LIBS)))
$(eval $(call unit_test,hottest_test,tests/unit/tools/hottest_test.c,tools store image base,$(TOOL_LIBS)))
$(eval $(call unit_test,procs_test,tests/unit/tools/procs_test.c,tools store image base,$(TOOL_LIBS)))
$(eval $(call unit_test,filter_test,tests/unit/tools/filter_test.c,tools store image base,$(TOOL_LIBS)))
$(eval $(call unit_test,print_test,tests/unit/tools/print_test.c,tools store image base,$(TOOL_LIBS)))
$(eval $(call unit_test,lines_test,tests/unit/tools/lines_test.c,tools store image base,$(TOOL_LIBS)))
$(eval $(call unit_test,stats_test,tests/unit/tools/stats_test.c,tools store image base,$(TOOL_LIBS)))
$(eval $(call unit_test,heapsites_test,tests/unit/tools/heapsites_test.c,tools store image base,$(TOOL_LIBS)))
$(eval $(call unit_test,wallparts_test,tests/unit/tools/wallparts_test.c,tools store image base,$(TOOL_LIBS)))
$(eval $(call unit_test,spikes_test,tests/unit/tools/spikes_test.c,tools store image base,$(TOOL_LIBS)))
