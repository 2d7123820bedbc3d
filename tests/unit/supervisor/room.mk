# Tests of the supervisor.
$(foreach t,policy governor relief talk,$(eval $(call unit_test,$(t)_test,tests/unit/supervisor/$(t)_test.c,supervisor base,)))
$(eval $(call unit_test,conf_test,tests/unit/supervisor/conf_test.c,supervisor host base,-linih))
$(eval $(call unit_test,retain_test,tests/unit/supervisor/retain_test.c,supervisor store base,-lsqlite3 -lz -ljansson -lpthread -lm))
$(eval $(call unit_test,sealer_test,tests/unit/supervisor/sealer_test.c,supervisor store base,-lsqlite3 -lz -ljansson -lpthread -lm))
$(eval $(call unit_test,service_test,tests/unit/supervisor/service_test.c,supervisor base,-ljansson))
$(eval $(call unit_test,targets_test,tests/unit/supervisor/targets_test.c,supervisor host image base,-ljansson))
