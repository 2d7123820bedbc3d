# Fuzzers of loaders/index and schema/image. Each says in its head what it covers ("covers:").
FUZZ_INDEX := govars elfindex cfi knowncode pclntab gotables debuglink image dwarf pypart phppart rubypart tlscode recordpart
$(foreach f,$(FUZZ_INDEX),$(eval $(call fuzzer,$(f)_fuzz,tests/fuzz/index/$(f)_fuzz.c,index image base,$(INDEX_LIBS))))
