# schema/: what every program must agree on. base < image, sql < store; nothing from outside this room.
$(eval $(call archive,base,$(wildcard schema/base/*.c schema/base/cli/*.c schema/base/file/*.c schema/base/limits/*.c schema/base/tables/*.c schema/families/*.c schema/probespec/*.c schema/jfr/*.c)))

# the version: that of debian/changelog's first line, which is the one place where it is written
VERSION   := $(shell sed -n '1s/^sonde .\([0-9][^ ]*\). .*/\1/p' debian/changelog)
GENERATED += $(B)/gen/schema/base/version.h
$(B)/gen/schema/base/version.h: debian/changelog
	@mkdir -p $(@D)
	$(Q){ echo '/* made from debian/changelog */'; echo '#define SONDE_VERSION "$(VERSION)"'; } > $@.tmp && mv $@.tmp $@
