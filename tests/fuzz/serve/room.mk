# fuzzers of serve/
$(eval $(call fuzzer,serve_guard_fuzz,tests/fuzz/serve/serve_guard_fuzz.c,serve base,-lmicrohttpd -ljansson -lz))
$(eval $(call fuzzer,serve_question_fuzz,tests/fuzz/serve/serve_question_fuzz.c,serve base,-lmicrohttpd -ljansson -lz))
$(eval $(call fuzzer,serve_mcp_post_fuzz,tests/fuzz/serve/serve_mcp_post_fuzz.c,serve base,-lmicrohttpd -ljansson -lz))
