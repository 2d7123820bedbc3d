# A family's loader is made of all sources in its folder, but where that has a room.mk of its own.
$(foreach f,$(FAMILIES),$(if $(wildcard loaders/$(f)/room.mk),,$(eval $(call loader,$(f),$(wildcard loaders/$(f)/*.c)))))
