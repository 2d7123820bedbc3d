# loaders/debuginfod: sonde-debuginfod, the one program that loads a library of the host, so that it is never static.
$(eval $(call program,sonde-debuginfod,loaders/debuginfod/main.c,base,-ldl))
STATIC_PROGRAMS := $(filter-out %/sonde-debuginfod,$(STATIC_PROGRAMS))
