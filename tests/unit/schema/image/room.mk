# Unit tests of schema/image: the reader alone, without what writes indexes.
$(eval $(call unit_test,image_test,tests/unit/schema/image/image_test.c,image base,))
