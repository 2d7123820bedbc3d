# Fuzzers of loaders/lib/protocols, one a protocol, and of loaders/replay.
PROTOCOL_FUZZERS := $(patsubst tests/fuzz/protocols/%.c,%,$(filter-out %/packet_fuzz.c,$(wildcard tests/fuzz/protocols/*_fuzz.c)))
$(foreach f,$(PROTOCOL_FUZZERS),$(eval $(call fuzzer,$(f),tests/fuzz/protocols/$(f).c,protocols base,-lz -lzstd)))
$(eval $(call fuzzer,packet_fuzz,tests/fuzz/protocols/packet_fuzz.c,replay protocols base,-lz -lzstd))
