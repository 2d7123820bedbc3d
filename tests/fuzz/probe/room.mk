# Fuzzer of probes as they are written, and of what tracefs says of their fields.
$(eval $(call fuzzer,probespec_fuzz,tests/fuzz/probe/probespec_fuzz.c loaders/probe/format.c loaders/probe/plan.c loaders/probe/regs.c,base,))
