# Fuzzer of what sonde-import takes.
$(eval $(call fuzzer,line_fuzz,tests/fuzz/import/line_fuzz.c,import store base,-lsqlite3 -lz -ljansson -lm))
