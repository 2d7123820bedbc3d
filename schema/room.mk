# schema/: what every program must agree on. base < image, sql < store; nothing from outside this room.
$(eval $(call archive,base,$(wildcard schema/base/*.c)))
