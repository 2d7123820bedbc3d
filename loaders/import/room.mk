# loaders/import: sonde-import. Writes what `sonde import` read; knows no format of profiles.
$(eval $(call archive,import,loaders/import/line.c loaders/import/stage.c))
$(eval $(call program,sonde-import,loaders/import/main.c,import host store image base,-lsqlite3 -lz -ljansson -lpthread -lm))
