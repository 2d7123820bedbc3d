# Unit tests of loaders/host: formats of many kernels, and differences.
$(eval $(call unit_test,host_parse_test,tests/unit/loaders/host/parse_test.c,hostread bpf host sandbox runtimes image store base,-lseccomp -lsqlite3 -ljansson -lz -lpthread -lm))
$(eval $(call unit_test,host_fillers_test,tests/unit/loaders/host/fillers_test.c,hostread bpf host sandbox runtimes image store base,-lseccomp -lsqlite3 -ljansson -lz -lpthread -lm))
$(eval $(call unit_test,host_change_detect_test,tests/unit/loaders/host/events/change_detect_test.c,hostread bpf host sandbox runtimes image store base,-lseccomp -lsqlite3 -ljansson -lz -lpthread -lm))
$(eval $(call unit_test,host_jvmfile_test,tests/unit/loaders/host/jvmfile_test.c,hostread store base,-lsqlite3 -lz -lpthread -lm))
$(eval $(call unit_test,host_podmanlog_test,tests/unit/loaders/host/logs/podmanlog_test.c,hostread bpf host sandbox runtimes image store base,-lseccomp -lsqlite3 -ljansson -lz -lpthread -lm))
$(eval $(call unit_test,host_mountset_test,tests/unit/loaders/host/events/mountset_test.c,hostread base,))
