# packaging: what people install: Debian's package, the static tarball, the container image, a release of all of them.
.PHONY: deb tarball
# what a static program has beside its own objects and libraries: theirs
STATIC_OBJS := $(patsubst %.c,$(B)/obj/%.o,$(wildcard packaging/static/*.c))
STATIC_LIBS := -lelf -llzma -lbz2 -lzstd -lz -lm
OBJECTS += $(STATIC_OBJS)

deb:
	@sh packaging/deb.sh $(B)

# all programs with all libraries in them, man pages, completions, unit
TARBALL := $(B)/sonde-$(VERSION)-x86_64.tar.xz
tarball: static all
	@sh packaging/tarball.sh $(B) $(VERSION)
