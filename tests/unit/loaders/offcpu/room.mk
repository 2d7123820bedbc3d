# Unit tests of loaders/offcpu, on maps and a store that are made up.
$(eval $(call unit_test,offcpu_pace_test,tests/unit/loaders/offcpu/pace_test.c loaders/offcpu/pace.c,base,))
$(foreach t,drain join,$(eval $(call unit_test,offcpu_$(t)_test,tests/unit/loaders/offcpu/$(t)_test.c \
  tests/unit/loaders/offcpu/fakes.c loaders/offcpu/$(t).c $(if $(filter join,$(t)),loaders/offcpu/object.c,loaders/offcpu/rest.c),store base,-lsqlite3 -lz)))
$(eval $(call unit_test,offcpu_parse_test,tests/unit/loaders/offcpu/parse_test.c $(addprefix loaders/offcpu/,quota_parse.c record.c),\
  base,))
