# loaders/replay: sonde-replay, requests out of packet captures
$(eval $(call archive,replay,$(addprefix loaders/replay/,packet.c pcapng.c fragments.c flows.c tally.c print.c save.c)))
$(eval $(call program,sonde-replay,loaders/replay/main.c loaders/replay/capture.c,replay protocols store image base,-lpcap -ljansson -lsqlite3 -lz -lpthread -lm))
