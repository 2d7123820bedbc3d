# export/push: sonde-push, which loads libcurl of the host, so that it is never static.
$(eval $(call archive,push,$(filter-out export/push/main.c,$(wildcard export/push/*.c))))
$(eval $(call program,sonde-push,export/push/main.c,push export tools extension store image base,-lsqlite3 -ljansson -linih -lz -ldl -lpthread -lm))
STATIC_PROGRAMS := $(filter-out %/sonde-push,$(STATIC_PROGRAMS))
