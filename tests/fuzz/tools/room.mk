# Fuzzers of the time grammar, of what terminals send, and of the profiles of other programs.
$(eval $(call fuzzer,when_fuzz,tests/fuzz/tools/when_fuzz.c,tools base,))
$(eval $(call fuzzer,keys_fuzz,tests/fuzz/tools/keys_fuzz.c,tools base,))
$(foreach f,pprof folded perfscript json jfr,$(eval $(call fuzzer,$(f)_fuzz,tests/fuzz/tools/$(f)_fuzz.c,tools store base,-lsqlite3 -ljansson -lz -lm)))
$(eval $(call fuzzer,checkfile_fuzz,tests/fuzz/tools/checkfile_fuzz.c,tools base,))
$(eval $(call fuzzer,mcp_fuzz,tests/fuzz/tools/mcp_fuzz.c,tools store base,-lsqlite3 -ljansson -lz -lm))
