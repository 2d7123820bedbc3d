# Fuzzers of what the store keeps in forms of its own.
$(eval $(call fuzzer,hist_fuzz,tests/fuzz/store/hist_fuzz.c,store base,-lsqlite3 -lm))
$(eval $(call fuzzer,pack_fuzz,tests/fuzz/store/pack_fuzz.c,store base,-lsqlite3 -lm))
