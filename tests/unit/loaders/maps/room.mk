# Unit tests of loaders/maps and of the parts of loaders/lib/host that belong to it.
$(foreach t,sideband mapset openin mapspack hostmaps,\
  $(eval $(call unit_test,$(t)_test,tests/unit/loaders/lib/host/$(t)_test.c,host image base,)))
$(eval $(call unit_test,cache_test,tests/unit/loaders/lib/host/cache_test.c,host image base,))
