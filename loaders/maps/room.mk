# loaders/maps: sonde-maps. The only program that watches mappings.
$(eval $(call program,sonde-maps,$(wildcard loaders/maps/*.c loaders/maps/*/*.c),bpf host runtimes sandbox image base,-lbpf -lseccomp -lelf -lz -ljansson))
