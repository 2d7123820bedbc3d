# Fuzzers of loaders/lib/runtimes.
$(foreach f,pylines python scriptobject php perl ruby beam hotspot v8 v8tables v8flow,$(eval $(call fuzzer,$(f)_fuzz,tests/fuzz/runtimes/$(f)_fuzz.c,runtimes base,)))
