# One BPF skeleton a family that has programs; `maps` belongs to sonde-maps, `pstack` to sonde-pstack.
$(foreach f,$(FAMILIES) maps pstack,$(if $(wildcard probes/$(f).bpf.c),$(eval $(call skeleton,$(f)))))
