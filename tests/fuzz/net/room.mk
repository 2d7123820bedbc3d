# The fuzzers of what family net's loader reads.
$(eval $(call fuzzer,net_records_fuzz,tests/fuzz/net/net_records_fuzz.c loaders/net/record.c loaders/net/conns.c loaders/net/others.c,base,))
$(eval $(call fuzzer,net_counts_fuzz,tests/fuzz/net/net_counts_fuzz.c loaders/net/counts.c,base,))
$(eval $(call fuzzer,net_hosts_fuzz,tests/fuzz/net/net_hosts_fuzz.c loaders/net/hostsfile.c loaders/net/record.c,base,))
