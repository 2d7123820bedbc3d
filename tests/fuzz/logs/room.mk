# Fuzzers of what family logs reads.
$(eval $(call fuzzer,logs_fuzz,tests/fuzz/logs/logs_fuzz.c,logsread host base,-lz))
$(eval $(call fuzzer,logs_wire_fuzz,tests/fuzz/logs/wire_fuzz.c loaders/logs/wire.c,base,))
$(eval $(call fuzzer,logs_packed_fuzz,tests/fuzz/logs/packed_fuzz.c,logsread host base,-lz))
