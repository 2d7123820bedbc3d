# The fuzzer of what sonde-nvml says.
$(eval $(call fuzzer,gpuparse_fuzz,tests/fuzz/gpu/gpuparse_fuzz.c loaders/gpu/gpuparse.c schema/facts/facts.c,base,))
