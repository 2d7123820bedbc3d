# schema/image: the reader of the image index. Depends on base.
$(eval $(call archive,image,$(wildcard schema/image/*.c)))
