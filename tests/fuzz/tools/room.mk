# Fuzzer of the time grammar.
$(eval $(call fuzzer,when_fuzz,tests/fuzz/tools/when_fuzz.c,tools base,))
