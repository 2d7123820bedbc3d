# Unit tests of loaders/scrape: HTTP's head, profile.proto, listening sockets, and what sonde-pprof says.
$(eval $(call unit_test,scrape_http_head_test,tests/unit/loaders/scrape/http_head_test.c,scraperead base,))
$(eval $(call unit_test,scrape_profile_test,tests/unit/loaders/scrape/profile_test.c,scraperead base,))
$(eval $(call unit_test,scrape_sockets_test,tests/unit/loaders/scrape/sockets_test.c,scraperead base,))
$(eval $(call unit_test,scrape_fetch_test,tests/unit/loaders/scrape/fetch_test.c,scraperead base,))
