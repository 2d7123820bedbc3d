# Unit tests of loaders/maps and of the parts of loaders/lib/host that belong to it.
$(foreach t,sideband mapset localfs openin mapspack hostmaps pace cpushare,\
  $(eval $(call unit_test,$(t)_test,tests/unit/loaders/lib/host/$(t)_test.c,host image base,-ljansson)))
$(eval $(call unit_test,cache_test,tests/unit/loaders/lib/host/cache_test.c,host image base,))
$(eval $(call unit_test,arena_test,tests/unit/loaders/maps/arena_test.c loaders/maps/arena.c,base,))
$(eval $(call unit_test,slices_test,tests/unit/loaders/maps/slices_test.c $(addprefix loaders/maps/,slices.c slots.c arena.c),\
  base,))
$(eval $(call unit_test,procevents_test,tests/unit/loaders/maps/procevents_test.c loaders/maps/procevents.c,base,))
$(eval $(call unit_test,rowsets_test,tests/unit/loaders/maps/rowsets_test.c $(addprefix loaders/maps/,rowsets.c arena.c),\
  base,))
$(eval $(call unit_test,rowparts_test,tests/unit/loaders/maps/rowparts_test.c $(addprefix loaders/maps/,rowparts.c rowsets.c arena.c),\
  base,))
$(eval $(call unit_test,gowho_test,tests/unit/loaders/maps/gowho_test.c loaders/maps/gowho.c,image base,))
