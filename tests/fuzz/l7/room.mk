# The fuzzers of what family l7 reads: the probes' records, with strangers' bytes in them, and the messages of the parser.
$(eval $(call fuzzer,l7_streams_fuzz,tests/fuzz/l7/l7_streams_fuzz.c loaders/l7/streams.c loaders/l7/sums.c loaders/l7/links.c loaders/l7/inorder.c loaders/l7/parser_message.c,protocols store image base,-lsqlite3 -lz -lpthread -lm))
$(eval $(call fuzzer,l7_message_fuzz,tests/fuzz/l7/l7_message_fuzz.c loaders/l7/parser_message.c,base,))
