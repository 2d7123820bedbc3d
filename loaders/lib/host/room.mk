# loaders/lib/host: reading the live host. No libbpf, no libelf, no libdw.
$(eval $(call archive,host,$(wildcard loaders/lib/host/*.c)))
