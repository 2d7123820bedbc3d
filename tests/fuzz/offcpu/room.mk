# Fuzzers of what the off-CPU loader reads.
$(eval $(call fuzzer,offcpu_record_fuzz,tests/fuzz/offcpu/offcpu_record_fuzz.c tests/unit/loaders/offcpu/fakes.c \
  $(addprefix loaders/offcpu/,record.c join.c object.c),store base,-lsqlite3 -lz))
$(eval $(call fuzzer,offcpu_quota_fuzz,tests/fuzz/offcpu/offcpu_quota_fuzz.c loaders/offcpu/quota_parse.c,base,))
