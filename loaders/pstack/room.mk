$(eval $(call program,sonde-pstack,$(wildcard loaders/pstack/*.c),bpf host runtimes image store base,-lbpf -lsqlite3 -ljansson -lz -lpthread))
