# Fuzzers of what sonde-goheap reads.
$(eval $(call fuzzer,buckets_fuzz,tests/fuzz/goheap/buckets_fuzz.c,buckets image base,))
