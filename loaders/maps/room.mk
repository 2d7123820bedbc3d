# loaders/maps: sonde-maps. The only program that watches mappings.
$(eval $(call program,sonde-maps,$(wildcard loaders/maps/*.c),bpf host image base,-lbpf -lelf -lz -ljansson))
