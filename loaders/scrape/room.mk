# loaders/scrape: the family's loader, and sonde-pprof, which asks. What is pure is in an archive, so that tests and fuzzers link it.
$(eval $(call archive,scraperead,$(addprefix loaders/scrape/,http_head.c profile.c sockets.c unixsockets.c fetch.c)))
$(eval $(call loader,scrape,$(addprefix loaders/scrape/,main.c unixconnect.c goprogs.c goprog.c tell.c),scraperead))
$(eval $(call program,sonde-pprof,loaders/scrape/pprof_main.c loaders/scrape/ask.c,scraperead sandbox base,-lseccomp -lz))
