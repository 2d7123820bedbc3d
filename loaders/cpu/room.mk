$(eval $(call program,sonde-cpu,$(wildcard loaders/cpu/*.c),bpf host runtimes image store base,-lbpf -lsqlite3 -ljansson -lz -lpthread -lm))
