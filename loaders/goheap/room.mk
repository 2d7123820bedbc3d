# loaders/goheap: what reads buckets in an archive, so that tests and fuzzers link it.
$(eval $(call archive,buckets,$(wildcard loaders/goheap/buckets*.c)))
$(eval $(call program,sonde-goheap,$(filter-out loaders/goheap/buckets%,$(wildcard loaders/goheap/*.c)),\
  buckets bpf sandbox host runtimes image store base,-lbpf -lseccomp -lsqlite3 -ljansson -lz -lpthread))
