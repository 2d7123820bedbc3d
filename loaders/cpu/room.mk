$(eval $(call program,sonde-cpu,$(wildcard loaders/cpu/*.c),bpf sandbox host runtimes image store base,-lbpf -lseccomp -lsqlite3 -ljansson -lz -lpthread -lm))
