# The tables of schema/extension over any block, series and stacks.
$(eval $(call fuzzer,extension_fuzz,tests/fuzz/extension/extension_fuzz.c,extension store base,-lsqlite3 -lz -lm))
