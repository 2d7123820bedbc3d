# The fuzzer of what the host family's loader reads.
$(eval $(call fuzzer,host_parse_fuzz,tests/fuzz/hostfamily/host_parse_fuzz.c loaders/host/parse.c,base,))
$(eval $(call fuzzer,oomlog_fuzz,tests/fuzz/hostfamily/oomlog_fuzz.c loaders/host/events/oomlog.c,base,))
$(eval $(call fuzzer,jvmfile_fuzz,tests/fuzz/hostfamily/jvmfile_fuzz.c loaders/host/jvmfile.c schema/facts/facts.c,base,))
$(eval $(call fuzzer,journalfile_fuzz,tests/fuzz/hostfamily/journalfile_fuzz.c loaders/lib/host/journal/journalfile.c loaders/lib/host/journal/journalhash.c,base,-lzstd))
