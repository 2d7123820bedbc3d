# Tests of the supervisor.
$(eval $(call unit_test,quantity_test,tests/unit/supervisor/quantity_test.c,supervisor base,))
