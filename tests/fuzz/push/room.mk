# fuzzers of export/push
$(eval $(call fuzzer,push_target_fuzz,tests/fuzz/push/push_target_fuzz.c,push export tools extension store image base,-lsqlite3 -ljansson -linih -lz -ldl -lpthread -lm))
$(eval $(call fuzzer,push_span_fuzz,tests/fuzz/push/push_span_fuzz.c,push export tools extension store image base,-lsqlite3 -ljansson -linih -lz -ldl -lpthread -lm))
$(eval $(call fuzzer,push_reply_fuzz,tests/fuzz/push/push_reply_fuzz.c export/push/reply.c,base,))
