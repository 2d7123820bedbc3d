$(eval $(call program,sonde-offcpu,$(wildcard loaders/offcpu/*.c),bpf sandbox host runtimes image store base,-lbpf -lseccomp -lsqlite3 -ljansson -lz -lpthread -lm))
