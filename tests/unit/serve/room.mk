# unit tests of serve/
$(foreach t,address gate guard mcp_calls mcp_post question,$(eval $(call unit_test,serve_$(t)_test,tests/unit/serve/$(t)_test.c,serve base,-lmicrohttpd -ljansson -lz -lpthread)))
