# unit tests of export/
$(eval $(call unit_test,export_totals_test,tests/unit/export/totals_test.c,export extension store image base,-lsqlite3 -ljansson -lz -lpthread -lm))
$(eval $(call unit_test,otlpname_test,tests/unit/export/push/otlp/otlpname_test.c,push export tools extension store image base,-lsqlite3 -ljansson -linih -lz -ldl -lpthread -lm))
$(eval $(call unit_test,otlpspanname_test,tests/unit/export/push/otlp/otlpspanname_test.c,push export tools extension store image base,-lsqlite3 -ljansson -linih -lz -ldl -lpthread -lm))
