# The main() of every unit test, and the tests of schema/base. Other rooms have a room.mk next to their tests.
OBJECTS += $(B)/obj/tests/unit/test.o
$(eval $(call unit_test,base_test,tests/unit/schema/base/base_test.c,base,))
$(eval $(call unit_test,child_test,tests/unit/schema/base/limits/child_test.c,base,-lpthread))
$(eval $(call unit_test,units_test,tests/unit/schema/base/units_test.c,base,))
$(foreach t,options quantity,$(eval $(call unit_test,$(t)_test,tests/unit/schema/base/cli/$(t)_test.c,base,)))
