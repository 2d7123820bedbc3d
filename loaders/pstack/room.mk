$(eval $(call program,sonde-pstack,$(wildcard loaders/pstack/*.c),bpf sandbox host runtimes image store base,-lbpf -lseccomp -lsqlite3 -ljansson -lz -lpthread))
