# loaders/symbolize: sonde-symbolize. Writes names into the store after the capture; knows no BPF.
$(eval $(call program,sonde-symbolize,$(wildcard loaders/symbolize/*.c),host store image base,-lsqlite3 -lz -ljansson -lpthread -lm))
