# Tests of the supervisor.
$(foreach t,policy starved load_limit load_shed log_lines,$(eval $(call unit_test,$(t)_test,$(call tested,supervisor,$(t)),supervisor base,)))
$(eval $(call unit_test,conf_test,tests/unit/supervisor/config/conf_test.c,supervisor host base,-linih))
$(eval $(call unit_test,retain_test,tests/unit/supervisor/retention/retain_test.c,supervisor store base,-lsqlite3 -lz -ljansson -lpthread -lm))
$(eval $(call unit_test,sealer_test,tests/unit/supervisor/retention/sealer_test.c,supervisor store base,-lsqlite3 -lz -ljansson -lpthread -lm))
$(eval $(call unit_test,keeper_test,tests/unit/supervisor/retention/keeper_test.c,supervisor store base,-lsqlite3 -lz -ljansson -lpthread -lm))
$(eval $(call unit_test,service_test,tests/unit/supervisor/children/service_test.c,supervisor base,-ljansson))
$(eval $(call unit_test,targets_test,tests/unit/supervisor/config/targets_test.c,supervisor host image base,-ljansson))
