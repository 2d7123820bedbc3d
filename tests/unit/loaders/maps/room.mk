# Unit tests of loaders/maps and of the parts of loaders/lib/host that belong to it.
$(foreach t,sideband mapset localfs openin mapspack hostmaps pace cpushare,\
  $(eval $(call unit_test,$(t)_test,$(call tested,loaders/lib/host,$(t)),host image base,-ljansson)))
$(eval $(call unit_test,cache_test,tests/unit/loaders/lib/host/maps/cache_test.c,host image base,))
$(eval $(call unit_test,arena_test,tests/unit/loaders/maps/publish/arena_test.c loaders/maps/publish/arena.c,base,))
$(eval $(call unit_test,slices_test,tests/unit/loaders/maps/publish/slices_test.c $(addprefix loaders/maps/publish/,slices.c slots.c arena.c),\
  base,))
$(eval $(call unit_test,procevents_test,tests/unit/loaders/maps/world/procevents_test.c loaders/maps/world/procevents.c,base,))
$(eval $(call unit_test,rowsets_test,tests/unit/loaders/maps/publish/rowsets_test.c $(addprefix loaders/maps/publish/,rowsets.c arena.c),\
  base,))
$(eval $(call unit_test,rowparts_test,tests/unit/loaders/maps/publish/rowparts_test.c $(addprefix loaders/maps/publish/,rowparts.c rowsets.c arena.c),\
  base,))
$(eval $(call unit_test,goroutine_offsets_test,tests/unit/loaders/maps/publish/goroutine_offsets_test.c loaders/maps/publish/goroutine_offsets.c,image base,))
$(eval $(call unit_test,lateargs_test,tests/unit/loaders/maps/world/lateargs_test.c loaders/maps/world/lateargs.c,base,))
$(eval $(call unit_test,textmove_test,tests/unit/loaders/maps/world/textmove_test.c loaders/maps/world/textmove.c,host base,))
