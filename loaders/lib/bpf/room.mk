# The common loop of every loader. Links libbpf; knows no skeleton.
$(eval $(call archive,bpf,$(wildcard loaders/lib/bpf/*.c loaders/lib/bpf/*/*.c)))
