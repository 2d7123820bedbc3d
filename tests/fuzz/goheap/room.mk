# Fuzzers of what sonde-goheap reads.
$(eval $(call fuzzer,buckets_fuzz,tests/fuzz/goheap/buckets_fuzz.c,buckets image base,))
$(eval $(call fuzzer,goheap_force_fuzz,tests/fuzz/goheap/force_fuzz.c loaders/goheap/force.c,host image base,))
