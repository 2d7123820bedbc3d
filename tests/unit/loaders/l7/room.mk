# Unit tests of loaders/l7: records of the probes become requests, messages of the parser are read whole or refused.
$(eval $(call unit_test,l7_streams_test,tests/unit/loaders/l7/streams_test.c,l7parts protocols store image base,-lsqlite3 -lz -lpthread -lm))
$(eval $(call unit_test,l7_parser_message_test,tests/unit/loaders/l7/parser_message_test.c,l7parts protocols store image base,-lsqlite3 -lz -lpthread -lm))
$(eval $(call unit_test,l7_links_test,tests/unit/loaders/l7/links_test.c,l7parts protocols store image base,-lsqlite3 -lz -lpthread -lm))
$(eval $(call unit_test,l7_unresolved_test,tests/unit/loaders/l7/unresolved_test.c,l7parts))
$(eval $(call unit_test,l7_ring_test,tests/unit/loaders/l7/ring_test.c,l7parts base,))
$(eval $(call unit_test,l7_outbox_test,tests/unit/loaders/l7/outbox_test.c,l7parts base,))
$(eval $(call unit_test,l7_accounts_test,tests/unit/loaders/l7/accounts_test.c,l7parts protocols store image base,-lsqlite3 -lz -lpthread -lm))
$(eval $(call unit_test,l7_sums_test,tests/unit/loaders/l7/sums_test.c,l7parts protocols store image base,-lsqlite3 -lz -lpthread -lm))
