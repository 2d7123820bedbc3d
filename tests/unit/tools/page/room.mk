# Unit tests of what leaves sonde: pages, folded stacks, pprof. The sources mirror their path (tests/unit/tools).
OUTPUT_LIBS := -lsqlite3 -ljansson -lz -lm
$(eval $(call unit_test,flame_tree_test,tests/unit/tools/fold/flame/flame_tree_test.c,tools store image base,$(OUTPUT_LIBS)))
$(eval $(call unit_test,output_test,tests/unit/tools/page/output_test.c,tools store image base,$(OUTPUT_LIBS)))
$(eval $(call unit_test,zstream_test,tests/unit/tools/print/zstream_test.c,tools base,$(OUTPUT_LIBS)))
$(eval $(call unit_test,pprof_test,tests/unit/tools/formats/pprof_test.c,tools store image base,$(OUTPUT_LIBS)))
$(eval $(call unit_test,flame_forms_test,tests/unit/tools/page/flame_forms_test.c,tools store image base,$(OUTPUT_LIBS)))

# a page without a store, for the tests that drive a browser
OBJECTS += $(B)/obj/tests/unit/tools/page/makepage.o
$(B)/tests/makepage: $(B)/obj/tests/unit/tools/page/makepage.o $(B)/lib/tools.a $(B)/lib/store.a $(B)/lib/base.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(OUTPUT_LIBS) -lzstd
unit-tests: $(B)/tests/makepage
