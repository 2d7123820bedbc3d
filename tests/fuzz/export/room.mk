# fuzzers of export/
$(eval $(call fuzzer,export_state_fuzz,tests/fuzz/export/export_state_fuzz.c,export extension store image base,-lsqlite3 -ljansson -lz -lpthread -lm))
