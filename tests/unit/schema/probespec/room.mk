# Unit tests of schema/probespec.
$(eval $(call unit_test,probespec_test,tests/unit/schema/probespec/spec_test.c,base,))
