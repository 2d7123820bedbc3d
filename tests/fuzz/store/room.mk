# Fuzzer of what the store keeps in forms of its own.
$(eval $(call fuzzer,hist_fuzz,tests/fuzz/store/hist_fuzz.c,store base,-lsqlite3 -lm))
