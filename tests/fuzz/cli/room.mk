# Fuzzer of command lines, sizes and durations.
$(eval $(call fuzzer,options_fuzz,tests/fuzz/cli/options_fuzz.c,base,))
