# SPDX-License-Identifier: BSD-2-Clause
# Installation. A page has an alias for each further name that it documents.

INSTALL ?= install
# WITH_ENVOY=1 also installs the module for Envoy.
envoydir ?= $(libdir)
# A file that processes have mapped is replaced by another one and never written
# in place; whoever opens its name meanwhile finds the old one or the new one.
# MODE, FILE, FOLDER
replace = $(INSTALL) -m $(1) $(2) $(3)/$(notdir $(2)).new && \
	mv -f $(3)/$(notdir $(2)).new $(3)/$(notdir $(2))
# Programs used only by tests are not installed. The pages of a program are
# where it is.
INSTALLED := $(strip $(TOOLS_IF_POSSIBLE) $(PROBE_IF_POSSIBLE) $(TOP_IF_POSSIBLE) \
	$(SYNC_IF_POSSIBLE) $(EVENTS_IF_POSSIBLE) $(PICK_IF_POSSIBLE))
PAGES := $(sort $(wildcard man/*.[37] \
	$(foreach t,$(notdir $(INSTALLED)),man/$(t).[18])))
SECTIONS := $(sort $(patsubst .%,%,$(suffix $(PAGES))))
# PAGE NAME for each further name of a page.
page_names = awk '/^\.Sh/ { on = ($$2 == "NAME") } on && $$1 == ".Nm" \
	{ print FILENAME, $$2 }' $(PAGES)
each_alias = @$(page_names) | while read -r page name; do \
	section=$${page\#\#*.}; page=$${page\#\#*/}; \
	[ "$$page" = "$$name.$$section" ] || \
	$(1) "$(DESTDIR)$(mandir)/man$$section/$$name.$$section"; done

.PHONY: install uninstall install-check

install: all $(if $(WITH_ENVOY),$(ENVOY_MODULE)) ## install to prefix=/usr/local, below DESTDIR; WITH_ENVOY=1
	$(INSTALL) -d $(DESTDIR)$(includedir) $(DESTDIR)$(libdir)/pkgconfig \
	    $(DESTDIR)$(bindir) $(SECTIONS:%=$(DESTDIR)$(mandir)/man%)
	$(INSTALL) -m 644 $(HEADERS) $(DESTDIR)$(includedir)
	$(INSTALL) -m 644 $(STATIC) $(HTTP_STATIC) $(DESTDIR)$(libdir)
	$(STRIP) --strip-debug $(addprefix $(DESTDIR)$(libdir)/,$(notdir \
	    $(STATIC) $(HTTP_STATIC)))
	$(call replace,755,$(SHARED),$(DESTDIR)$(libdir))
	ln -sf $(notdir $(SHARED)) $(DESTDIR)$(libdir)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(libdir)/libkvroute.so
	$(call replace,755,$(HTTP_SHARED),$(DESTDIR)$(libdir))
	ln -sf $(notdir $(HTTP_SHARED)) $(DESTDIR)$(libdir)/$(HTTP_SO_NAME)
	ln -sf $(HTTP_SO_NAME) $(DESTDIR)$(libdir)/libkvroute-http.so
	$(INSTALL) -m 644 $(PC) $(HTTP_PC) $(DESTDIR)$(libdir)/pkgconfig
	$(if $(INSTALLED),$(INSTALL) -m 755 $(INSTALLED) $(DESTDIR)$(bindir))
	$(if $(WITH_ENVOY),$(INSTALL) -d $(DESTDIR)$(envoydir) && \
	    $(call replace,755,$(ENVOY_MODULE),$(DESTDIR)$(envoydir)))
	$(foreach s,$(SECTIONS),$(INSTALL) -m 644 $(filter %.$(s),$(PAGES)) \
	    $(DESTDIR)$(mandir)/man$(s) &&) :
	$(call each_alias,ln -sf "$$page")
	$(if $(SYNC_IF_POSSIBLE),$(INSTALL) -d $(DESTDIR)$(unitdir) && \
	    sed 's|@bindir@|$(bindir)|' ext/sync/kvroute-sync.service.in \
	        > $(DESTDIR)$(unitdir)/kvroute-sync@.service)
	$(if $(EVENTS_IF_POSSIBLE),$(INSTALL) -d $(DESTDIR)$(unitdir) && \
	    sed 's|@bindir@|$(bindir)|' ext/events/kvroute-events.service.in \
	        > $(DESTDIR)$(unitdir)/kvroute-events@.service)
	$(if $(PICK_IF_POSSIBLE),$(INSTALL) -d $(DESTDIR)$(unitdir) && \
	    sed 's|@bindir@|$(bindir)|' ext/pick/kvroute-pick.service.in \
	        > $(DESTDIR)$(unitdir)/kvroute-pick@.service)

uninstall: ## remove what install installed
	rm -f $(HEADERS:include/%=$(DESTDIR)$(includedir)/%) \
	    $(addprefix $(DESTDIR)$(libdir)/,$(notdir $(STATIC) $(SHARED) \
	        $(HTTP_STATIC) $(HTTP_SHARED)) $(SONAME) libkvroute.so \
	        $(HTTP_SO_NAME) libkvroute-http.so pkgconfig/kvroute.pc \
	        pkgconfig/kvroute-http.pc) \
	    $(addprefix $(DESTDIR)$(unitdir)/,kvroute-sync@.service \
	        kvroute-events@.service kvroute-pick@.service) \
	    $(addprefix $(DESTDIR)$(bindir)/,$(notdir $(INSTALLED))) \
	    $(DESTDIR)$(envoydir)/$(notdir $(ENVOY_MODULE)) \
	    $(foreach p,$(PAGES),$(DESTDIR)$(mandir)/man$(subst .,,$(suffix \
	        $(p)))/$(notdir $(p)))
	$(call each_alias,rm -f)

install-check: all #- compile and run a program against an installed copy
	@+MAKE='$(MAKE)' sh mk/install-check.sh $(BUILD)
