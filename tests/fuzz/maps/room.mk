# Fuzzers of what sonde-maps and its clients read.
$(eval $(call fuzzer,sideband_fuzz,tests/fuzz/maps/sideband_fuzz.c,host image base,))
$(eval $(call fuzzer,mapspack_fuzz,tests/fuzz/maps/mapspack_fuzz.c,host image base,))
