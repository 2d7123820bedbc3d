$(eval $(call program,sonde-cpu,$(wildcard loaders/cpu/*.c),bpf host image store base,-lbpf -lsqlite3 -ljansson -lz -lpthread -lm))
