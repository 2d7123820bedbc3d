# Unit tests of loaders/index. oracle_test compares with nm, readelf, go and rustc and skips what is not installed.
INDEX_TESTS := parsers rows cfi gorows golines symset lineset indexer sandbox child oracle
$(foreach t,$(INDEX_TESTS),$(eval $(call unit_test,index_$(t)_test,tests/unit/loaders/index/$(t)_test.c,index image base,$(INDEX_LIBS))))
