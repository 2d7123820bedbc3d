# Fuzzers of the store's own file formats.
$(eval $(call fuzzer,hist_fuzz,tests/fuzz/store/hist_fuzz.c,store base,-lsqlite3 -lz -lm))
$(eval $(call fuzzer,shedlog_fuzz,tests/fuzz/store/shedlog_fuzz.c,store base,-lsqlite3 -lz -lm))
$(eval $(call fuzzer,column_fuzz,tests/fuzz/store/column_fuzz.c,store base,-lsqlite3 -lz -lm))
$(eval $(call fuzzer,packedcolumns_fuzz,tests/fuzz/store/packedcolumns_fuzz.c,store base,-lsqlite3 -lz -lm))
