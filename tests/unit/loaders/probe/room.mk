# Unit tests of loaders/probe: its pure parts.
$(eval $(call unit_test,probe_plan_test,tests/unit/loaders/probe/plan_test.c loaders/probe/plan.c loaders/probe/format.c loaders/probe/regs.c,base,))
$(eval $(call unit_test,probe_pace_test,tests/unit/loaders/probe/pace_test.c loaders/probe/pace.c,base,))
$(eval $(call unit_test,probe_text_test,tests/unit/loaders/probe/text_test.c loaders/probe/text.c,host base,))
