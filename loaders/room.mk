# A family's loader is built from all sources in its folder, unless the folder has its own room.mk.
$(foreach f,$(FAMILIES),$(if $(wildcard loaders/$(f)/room.mk),,$(eval $(call loader,$(f),$(wildcard loaders/$(f)/*.c)))))
