# supervisor: sonded, sonde-prune and sonde-seal. Knows no BPF, links no libbpf.
$(eval $(call archive,supervisor,$(filter-out %_main.c,$(wildcard supervisor/*.c supervisor/*/*.c))))
$(eval $(call program,sonde-prune,supervisor/prune_main.c,supervisor store base,-lsqlite3 -lz -ljansson -lpthread -lm))
$(eval $(call program,sonde-seal,supervisor/seal_main.c,supervisor store base,-lsqlite3 -lz -ljansson -lpthread -lm))
$(eval $(call program,sonded,supervisor/sonded_main.c,supervisor host store image sandbox base,-lsqlite3 -lz -ljansson -linih -lseccomp -lpthread -lm))
