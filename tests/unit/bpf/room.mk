# Unit tests of loaders/lib/bpf; the sources mirror its path.
$(eval $(call unit_test,loader_options_test,tests/unit/loaders/lib/bpf/options_test.c,bpf host base,))
$(eval $(call unit_test,hold_test,tests/unit/loaders/lib/bpf/hold_test.c,bpf base,))
$(eval $(call unit_test,targetfeed_test,tests/unit/loaders/lib/bpf/targetfeed_test.c,bpf base,))
$(eval $(call unit_test,loader_parts_test,tests/unit/loaders/lib/bpf/parts_test.c,bpf base,-ljansson))
$(eval $(call unit_test,kerneltypes_test,tests/unit/loaders/lib/bpf/kerneltypes_test.c,bpf base,-lbpf -lelf -lz))
$(eval $(call unit_test,progsyms_test,tests/unit/loaders/lib/bpf/progsyms_test.c,bpf host base,-lbpf -lelf -lz))
# and of loaders/lib/sandbox (its `sandbox` is tested with sonde-index, which has it)
$(eval $(call unit_test,confine_test,tests/unit/loaders/lib/sandbox/confine_test.c,sandbox base,-lseccomp -lpthread))
