# One BPF skeleton a family; `maps` belongs to sonde-maps.
$(eval $(call skeleton,cpu))
$(eval $(call skeleton,offcpu))
ifneq ($(wildcard probes/maps.bpf.c),)
$(eval $(call skeleton,maps))
endif
