# The flame graph page: the scripts become one, and page_blob.c takes template, style and script into the binary as they
# are (.incbin). The two hashes are what the page's Content-Security-Policy allows to run.
PAGE     := $(B)/gen/tools/page
PAGE_JS  := $(patsubst %,tools/page/%.js,data layout colour draw table keys main)
GENERATED += $(PAGE)/page.js $(PAGE)/hash.h

$(PAGE)/page.js: $(PAGE_JS)
	@mkdir -p $(@D)
	$(Q)! grep -niE '</script|<!--' $^
	$(Q)(echo '(() => {'; echo "'use strict';"; cat $^; echo '})();') > $@.tmp && mv $@.tmp $@

# SHA-256 in base64, of exactly the bytes between the tags
PAGE_HASH = printf "$$(sha256sum < $(1) | cut -c1-64 | sed 's/../\\x&/g')" | base64
$(PAGE)/hash.h: $(PAGE)/page.js tools/page/page.css
	@mkdir -p $(@D)
	$(Q)(echo "#define PAGE_SCRIPT_HASH \"$$($(call PAGE_HASH,$(PAGE)/page.js))\""; \
	     echo "#define PAGE_STYLE_HASH \"$$($(call PAGE_HASH,tools/page/page.css))\"") > $@.tmp && mv $@.tmp $@

# the compiler does not see .incbin
$(B)/obj/tools/page_blob.o: tools/page/page.html tools/page/page.css $(PAGE)/page.js
$(B)/obj/tools/flame_html.o: | $(PAGE)/hash.h
