# loaders/lib/sandbox: processes without rights, and with few (libseccomp). sonde-index has it in its own archive.
$(eval $(call archive,sandbox,$(wildcard loaders/lib/sandbox/*.c)))
