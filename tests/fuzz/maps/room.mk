# Fuzzers of what sonde-maps and its clients read.
$(eval $(call fuzzer,sideband_fuzz,tests/fuzz/maps/sideband_fuzz.c,host image base,))
$(eval $(call fuzzer,mapspack_fuzz,tests/fuzz/maps/mapspack_fuzz.c,host image base,-ljansson))
$(eval $(call fuzzer,rowsets_fuzz,tests/fuzz/maps/rowsets_fuzz.c $(addprefix loaders/maps/publish/,rowparts.c rowsets.c arena.c),host image base,))
$(eval $(call fuzzer,dotnetipc_fuzz,tests/fuzz/maps/dotnetipc_fuzz.c loaders/maps/dotnet/dotnetipc.c,base,))
$(eval $(call fuzzer,textmove_fuzz,tests/fuzz/maps/textmove_fuzz.c loaders/maps/world/textmove.c,host base,))
