# packaging: what people install: Debian's package, the static tarball, the container image, a release of all of them.
.PHONY: deb tarball image release
# the objects and libraries that a static program needs in addition to its own
STATIC_OBJS := $(patsubst %.c,$(B)/obj/%.o,$(wildcard packaging/static/*.c))
STATIC_LIBS := -lelf -llzma -lbz2 -lzstd -lz -lm
OBJECTS += $(STATIC_OBJS)

deb:
	@sh packaging/deb.sh $(B)

# all programs with all libraries in them, man pages, completions, unit
TARBALL := $(B)/sonde-$(VERSION)-x86_64.tar.xz
tarball: static all
	@sh packaging/tarball.sh $(B) $(VERSION)

# from scratch, for docker load and podman load; and its compose file
image: tarball
	@sh packaging/image.sh $(B) $(VERSION)

# one after the other: the package is built in a copy of the tree below $(B)
release:
	@$(MAKE) --no-print-directory deb
	@$(MAKE) --no-print-directory image
	@sh packaging/release.sh $(B) $(VERSION)
