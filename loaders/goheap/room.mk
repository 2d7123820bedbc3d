# loaders/goheap: what reads buckets in an archive, so that tests and fuzzers link it.
$(eval $(call archive,buckets,$(wildcard loaders/goheap/buckets*.c)))
$(eval $(call loader,goheap,$(filter-out loaders/goheap/buckets%,$(wildcard loaders/goheap/*.c)),buckets))
