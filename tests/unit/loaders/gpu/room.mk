# Unit tests of loaders/gpu: what is summed of NVML's samples, and the text that tells it.
$(eval $(call unit_test,gpu_nvmlread_test,tests/unit/loaders/gpu/nvmlread_test.c,nvmlread gpuread store base,-lsqlite3 -lz -ldl -lpthread -lm))
$(eval $(call unit_test,gpu_gpuparse_test,tests/unit/loaders/gpu/gpuparse_test.c,gpuread store base,-lsqlite3 -lz -lpthread -lm))
