# Fuzzers of the host parsers; seeds of real files are made by seeds.sh.
$(eval $(call fuzzer,kallsyms_fuzz,tests/fuzz/host/kallsyms_fuzz.c,host base,))
$(eval $(call fuzzer,perfmap_fuzz,tests/fuzz/host/perfmap_fuzz.c,host base,))
$(eval $(call fuzzer,jitdump_fuzz,tests/fuzz/host/jitdump_fuzz.c,host base,))
$(eval $(call fuzzer,proc_fuzz,tests/fuzz/host/proc_fuzz.c,host base,-ljansson))
$(eval $(call fuzzer,args_fuzz,tests/fuzz/host/args_fuzz.c,host base,))
$(eval $(call fuzzer,container_fuzz,tests/fuzz/host/container_fuzz.c,host base,-ljansson))
$(eval $(call fuzzer,late_fuzz,tests/fuzz/host/late_fuzz.c,host base,))
$(eval $(call fuzzer,containerlog_fuzz,tests/fuzz/host/containerlog_fuzz.c,host base,-ljansson))
