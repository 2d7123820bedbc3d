# loaders/gpu: the family's loader, and sonde-nvml, which loads NVIDIA's library of the host, so that it is never static.
$(eval $(call archive,gpuread,$(addprefix loaders/gpu/,gpuparse.c wire.c)))
$(eval $(call archive,nvmlread,$(addprefix loaders/gpu/,nvmlapi.c nvmlread.c)))
$(eval $(call loader,gpu,loaders/gpu/main.c,gpuread))
$(eval $(call program,sonde-nvml,loaders/gpu/nvml_main.c,nvmlread base,-ldl))
STATIC_PROGRAMS := $(filter-out %/sonde-nvml,$(STATIC_PROGRAMS))
