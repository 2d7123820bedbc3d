# export/push: sonde-push, which loads libcurl of the host, so that it is never static. In the tarball's all libraries are but the C library, which
# both share.
PUSH_LIBS := push export tools extension store image base
$(eval $(call archive,push,$(filter-out export/push/main.c,$(wildcard export/push/*.c export/push/*/*.c))))
$(eval $(call program,sonde-push,export/push/main.c,$(PUSH_LIBS),-lsqlite3 -ljansson -linih -lz -ldl -lpthread -lm))
STATIC_PROGRAMS := $(filter-out %/sonde-push,$(STATIC_PROGRAMS)) $(B)/static/with-libc/sonde-push
$(B)/static/with-libc/sonde-push: $(sonde-push_OBJS) $(patsubst %,$(B)/lib/%.a,$(PUSH_LIBS))
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS_) $(CFLAGS) $(LDFLAGS_) -pie $(LDFLAGS) -o $@ $^ -Wl,-Bstatic,--start-group -lsqlite3 -ljansson -linih -lelf -llzma -lbz2 -lzstd -lz \
	    -Wl,--end-group,-Bdynamic -lm
