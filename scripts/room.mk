# scripts: putting the programs where they belong, and taking them away again.
#   make install DESTDIR=/tmp/x PREFIX=/usr      sonde in bin, its helpers in libexec/sonde, SQLite's extension in lib/sonde, man pages, licences
DESTDIR    ?=
INSTALL    ?= install
bindir     := $(DESTDIR)$(PREFIX)/bin
libexecdir := $(DESTDIR)$(PREFIX)/libexec/sonde
libdir     := $(DESTDIR)$(PREFIX)/lib/sonde
mandir     := $(DESTDIR)$(PREFIX)/share/man
docdir     := $(DESTDIR)$(PREFIX)/share/doc/sonde
MAN_PAGES  := $(wildcard docs/man/*.[1-8])
datadir    := $(DESTDIR)$(PREFIX)/share
unitdir    := $(DESTDIR)$(PREFIX)/lib/systemd/system
UNITS      := $(addprefix $(unitdir)/,sonded.service sonde-serve.service sonde-push.service sonde-nvml@.service sonde-nvml.socket sonde-pprof@.service sonde-pprof.socket)
sysusers   := $(DESTDIR)$(PREFIX)/lib/sysusers.d/sonde.conf
tmpfiles   := $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/sonde.conf
sysctls    := $(DESTDIR)$(PREFIX)/lib/sysctl.d/60-sonde.conf
zshdir     := zsh/site-functions
# what a shell completes sonde by: its file, and where that shell looks for it
COMPLETES  := bash=bash-completion/completions/sonde zsh=$(zshdir)/_sonde fish=fish/vendor_completions.d/sonde.fish

.PHONY: install uninstall man

# the man pages' parts that come from the options' tables, the configuration's keys and the schema; looked at by check-layout
man: all
	/usr/bin/python3 scripts/manpages.py --write

install: all
	$(INSTALL) -d $(bindir) $(libexecdir) $(docdir) $(sort $(foreach m,$(MAN_PAGES),$(mandir)/man$(subst .,,$(suffix $(m)))))
	$(INSTALL) -m 0755 $(B)/bin/sonde $(bindir)/sonde
	$(INSTALL) -m 0755 $(filter-out $(B)/bin/sonde,$(PROGRAMS)) $(libexecdir)/
	$(INSTALL) -D -m 0644 $(EXTENSION) $(libdir)/sonde.so
	$(foreach m,$(MAN_PAGES),$(INSTALL) -m 0644 $(m) $(mandir)/man$(subst .,,$(suffix $(m)))/$(notdir $(m)) &&) :
	$(INSTALL) -m 0644 LICENSES/*.txt $(docdir)/
	$(INSTALL) -d $(unitdir)
	sed 's|@libexecdir@|$(PREFIX)/libexec/sonde|' supervisor/systemd/sonded.service > $(unitdir)/sonded.service
	sed 's|@libexecdir@|$(PREFIX)/libexec/sonde|' serve/systemd/sonde-serve.service > $(unitdir)/sonde-serve.service
	sed 's|@libexecdir@|$(PREFIX)/libexec/sonde|' export/systemd/sonde-push.service > $(unitdir)/sonde-push.service
	sed 's|@libexecdir@|$(PREFIX)/libexec/sonde|' loaders/gpu/systemd/sonde-nvml@.service > $(unitdir)/sonde-nvml@.service
	cp loaders/gpu/systemd/sonde-nvml.socket $(unitdir)/sonde-nvml.socket
	sed 's|@libexecdir@|$(PREFIX)/libexec/sonde|' loaders/scrape/systemd/sonde-pprof@.service > $(unitdir)/sonde-pprof@.service
	cp loaders/scrape/systemd/sonde-pprof.socket $(unitdir)/sonde-pprof.socket
	chmod 0644 $(UNITS)
	$(INSTALL) -D -m 0644 supervisor/systemd/sysusers.conf $(sysusers)
	$(INSTALL) -D -m 0644 supervisor/systemd/tmpfiles.conf $(tmpfiles)
	$(INSTALL) -D -m 0644 supervisor/systemd/sysctl.conf $(sysctls)
	$(foreach c,$(COMPLETES),$(INSTALL) -D -m 0644 tools/verbs/completion/sonde.$(firstword $(subst =, ,$(c))) \
		$(datadir)/$(lastword $(subst =, ,$(c))) &&) :

# only what install put there
uninstall:
	rm -f $(bindir)/sonde $(foreach p,$(filter-out $(B)/bin/sonde,$(PROGRAMS)),$(libexecdir)/$(notdir $(p)))
	rm -f $(foreach m,$(MAN_PAGES),$(mandir)/man$(subst .,,$(suffix $(m)))/$(notdir $(m)))
	rm -f $(foreach l,$(wildcard LICENSES/*.txt),$(docdir)/$(notdir $(l)))
	rm -f $(foreach c,$(COMPLETES),$(datadir)/$(lastword $(subst =, ,$(c))))
	rm -f $(libdir)/sonde.so $(UNITS) $(sysusers) $(tmpfiles) $(sysctls)
	-rmdir $(libexecdir) $(libdir) $(docdir) 2>/dev/null
