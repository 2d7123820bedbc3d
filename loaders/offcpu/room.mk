$(eval $(call program,sonde-offcpu,$(wildcard loaders/offcpu/*.c),bpf host runtimes image store base,-lbpf -lsqlite3 -ljansson -lz -lpthread -lm))
