# loaders/lib/sandbox: a process without rights (libseccomp). sonde-index has it in its own archive.
$(eval $(call archive,sandbox,loaders/lib/sandbox/sandbox.c))
