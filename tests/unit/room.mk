# Unit tests of schema/base. Other rooms add their own room.mk beside their tests.
$(eval $(call unit_test,base_test,tests/unit/schema/base/base_test.c,base,))
$(eval $(call unit_test,units_test,tests/unit/schema/base/units_test.c,base,))
$(foreach t,options quantity,$(eval $(call unit_test,$(t)_test,tests/unit/schema/base/cli/$(t)_test.c,base,)))
