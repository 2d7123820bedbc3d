# tools: the query tool. No libbpf, no libelf: what touches the live host are helper programs that it runs.
$(eval $(call archive,tools,$(wildcard tools/*/*.c tools/*/*/*.c)))
$(eval $(call program,sonde,tools/main.c,tools extension store image base,-lsqlite3 -ljansson -lz -lpthread -lm))

# The named queries become C strings.
QUERIES   := $(sort $(wildcard tools/sql/queries/*.sql))
GENERATED += $(B)/gen/tools/sql/queries.h
$(B)/gen/tools/sql/queries.h: $(QUERIES) tools/room.mk
	@mkdir -p $(@D)
	$(Q){ echo '/* made from tools/sql/queries/NAME.sql */'; echo 'const struct namedquery NAMEDQUERIES[] = {'; \
	  for f in $(QUERIES); do n=$${f##*/}; \
	    echo "{\"$${n%.sql}\","; sed -e 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' $$f; echo '},'; done; \
	  echo '{0}};'; } > $@.tmp && mv $@.tmp $@

# The shells' completions, too.
COMPLETIONS := $(foreach s,bash zsh fish,tools/verbs/completion/sonde.$(s))
GENERATED += $(B)/gen/tools/verbs/completion.h
$(B)/gen/tools/verbs/completion.h: $(COMPLETIONS) tools/room.mk
	@mkdir -p $(@D)
	$(Q){ echo '/* made from tools/verbs/completion/ */'; \
	  echo 'static const struct { const char *shell, *text; } COMPLETIONS[] = {'; \
	  for f in $(COMPLETIONS); do \
	    echo "{\"$${f##*.}\","; sed -e 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' $$f; echo '},'; done; \
	  echo '};'; } > $@.tmp && mv $@.tmp $@

# The checks that ship, too.
CHECKS    := $(sort $(wildcard tools/checks/queries/*.sql tools/checks/queries/*/*.sql))
GENERATED += $(B)/gen/tools/checks/shipped.h
$(B)/gen/tools/checks/shipped.h: $(CHECKS) tools/room.mk
	@mkdir -p $(@D)
	$(Q){ echo '/* made from tools/checks/queries/NAME.sql */'; echo 'static const struct { const char *name, *text; } SHIPPED_CHECKS[] = {'; \
	  for f in $(CHECKS); do n=$${f##*/}; \
	    echo "{\"$${n%.sql}\","; sed -e 's/\\/\\\\/g; s/"/\\"/g; s/.*/"&\\n"/' $$f; echo '},'; done; \
	  echo '{0}};'; } > $@.tmp && mv $@.tmp $@
