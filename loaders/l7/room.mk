# loaders/l7: what is pure in an archive, so that tests and fuzzers link it.
$(eval $(call archive,l7parts,$(addprefix loaders/l7/,streams.c stream.c running.c sums.c links.c serving.c inorder.c parser_message.c reports/unresolved.c reports/health.c ring.c outbox.c)))
$(eval $(call loader,l7,$(addprefix loaders/l7/,main.c hooks.c store_rows.c parser.c parser_child.c) $(addprefix loaders/l7/tls/,tls.c tlssite.c tlssweep.c javaagents.c),l7parts protocols))
