# One BPF skeleton a family; `maps` belongs to sonde-maps.
$(eval $(call skeleton,cpu))
ifneq ($(wildcard probes/maps.bpf.c),)
$(eval $(call skeleton,maps))
endif
