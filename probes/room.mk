# One BPF skeleton a family; `maps` belongs to sonde-maps, `pstack` to sonde-pstack.
$(eval $(call skeleton,cpu))
$(eval $(call skeleton,offcpu))
$(eval $(call skeleton,goheap))
$(eval $(call skeleton,pstack))
$(eval $(call skeleton,net))
$(eval $(call skeleton,l7))
ifneq ($(wildcard probes/maps.bpf.c),)
$(eval $(call skeleton,maps))
endif
