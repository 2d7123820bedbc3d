# Fuzzer of the configuration and of sizes and times.
$(eval $(call fuzzer,conf_fuzz,tests/fuzz/supervisor/conf_fuzz.c,supervisor host base,-linih))
