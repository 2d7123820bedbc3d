# The fuzzers of what Go programs answer, and of what sonde-pprof's children say.
$(eval $(call fuzzer,scrape_answer_fuzz,tests/fuzz/scrape/scrape_answer_fuzz.c loaders/scrape/http_head.c,base,))
$(eval $(call fuzzer,scrape_profile_fuzz,tests/fuzz/scrape/scrape_profile_fuzz.c loaders/scrape/profile.c,base,))
$(eval $(call fuzzer,scrape_sockets_fuzz,tests/fuzz/scrape/scrape_sockets_fuzz.c loaders/scrape/sockets.c loaders/scrape/unixsockets.c,base,))
$(eval $(call fuzzer,scrape_fetch_fuzz,tests/fuzz/scrape/scrape_fetch_fuzz.c loaders/scrape/fetch.c,base,))
