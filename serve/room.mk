# serve: sonde-serve shows the store in a browser. It uses no BPF and opens no store: it runs `sonde`. Its page is made from serve/page and the
# drawing modules of tools/page, joined and packed; asset.c includes them in the program (.incbin).
SERVE_GEN := $(B)/gen/serve
SERVE_JS  := $(patsubst %,tools/page/script/%.js,data looks build layout format colour diff draw graph theme tabs tree tip who) \
             $(patsubst %,serve/page/%.js,ask dom place words profile band grid requests trace why trouble resources disks logs services tables picture runs sql marks jump hotkeys main)
SERVE_CSS := tools/page/page.css serve/page/serve.css
SERVE_GZ  := $(patsubst %,$(SERVE_GEN)/%.gz,index.html app.css app.js)
GENERATED += $(SERVE_GZ)

# A clear message for a missing library, before the compiler's.
SERVE_MHD := $(shell printf '\#include <microhttpd.h>\n' | $(CC) -E -xc - >/dev/null 2>&1 && echo yes)
ifneq ($(SERVE_MHD),yes)
$(if $(filter-out clean,$(or $(MAKECMDGOALS),all)),$(error libmicrohttpd is missing, which sonde-serve needs: scripts/deps.sh build, or apt-get install libmicrohttpd-dev))
endif

$(SERVE_GEN)/app.js: $(SERVE_JS)
	@mkdir -p $(@D)
	$(Q)(echo '(() => {'; echo "'use strict';"; cat $^ | sed -E 's/^\t+//; /^\/\/ /d'; echo '})();') > $@.tmp && mv $@.tmp $@
$(SERVE_GEN)/app.css: $(SERVE_CSS)
	@mkdir -p $(@D)
	$(Q)cat $^ | sed -E 's/^\t+//' > $@.tmp && mv $@.tmp $@
$(SERVE_GEN)/index.html: serve/page/index.html
	@mkdir -p $(@D)
	$(Q)cp $< $@
$(SERVE_GEN)/%.gz: $(SERVE_GEN)/%
	$(Q)gzip -9 -n -c $< > $@.tmp && mv $@.tmp $@

CFLAGS_serve_asset := -DSERVE_GEN='"$(SERVE_GEN)"'
# the compiler does not see the dependency on .incbin
$(B)/obj/serve/asset.o: $(SERVE_GZ)

$(eval $(call archive,serve,$(filter-out serve/main.c,$(wildcard serve/*.c))))
$(eval $(call program,sonde-serve,serve/main.c,serve base,-lmicrohttpd -ljansson -lz -lpthread))
