# packaging: what people install: Debian's package, the static tarball, the container image, a release of all of them.
.PHONY: deb
deb:
	@sh packaging/deb.sh $(B)
