$(eval $(call archive,pstackwatch,loaders/pstack/wait_fds.c))
$(eval $(call program,sonde-pstack,$(filter-out loaders/pstack/wait_fds.c,$(wildcard loaders/pstack/*.c)),pstackwatch bpf host sandbox runtimes image store base,-lbpf -lseccomp -lsqlite3 -ljansson -lz -lpthread))
