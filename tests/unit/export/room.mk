# unit tests of export/
$(eval $(call unit_test,export_totals_test,tests/unit/export/totals_test.c,export extension store image base,-lsqlite3 -ljansson -lz -lpthread -lm))
