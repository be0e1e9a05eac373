# SPDX-License-Identifier: BSD-2-Clause
# libkvroute-http: ext/http and the pool on it, by the map of the pool. Names
# without its prefix are local in the static library, as in libkvroute.

HTTP_SO_NAME := libkvroute-http.so.$(firstword $(subst ., ,$(VERSION)))
HTTP_STATIC := $(BUILD)/libkvroute-http.a
HTTP_SHARED := $(BUILD)/libkvroute-http.so.$(VERSION)
HTTP_PC := $(BUILD)/kvroute-http.pc
HTTP_MAP := ext/http/pool/kvroute-http.map
# It acts for no other user, as a master does.
HTTP_LIBRARY := $(filter-out ext/http/life/region_file.c,$(HTTP)) $(POOL)

all: $(HTTP_STATIC) $(HTTP_SHARED) $(HTTP_PC)

$(BUILD)/examples/http: $(HTTP_STATIC)

$(BUILD)/kvroute-http.o: $(call objects,$(HTTP_LIBRARY)) $(BUILD)/gen/sources
	$(call say,LD,$@)
	$(Q)$(CC) -r -nostdlib -o $@ $(filter %.o,$^)
	$(Q)$(OBJCOPY) --localize-hidden $@

$(HTTP_STATIC): $(BUILD)/kvroute-http.o
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $<

$(HTTP_SHARED): $(call objects,$(HTTP_LIBRARY)) $(HTTP_MAP) $(SHARED) \
    $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -shared -Wl,-soname,$(HTTP_SO_NAME) \
	    -Wl,--version-script=$(HTTP_MAP) -Wl,--as-needed -Wl,-z,now \
	    $(if $(SAN),,-Wl,-z,defs) -o $@.new $(filter %.o,$^) $(SHARED) \
	    $(LDLIBS)
	$(Q)mv -f $@.new $@
	$(Q)ln -sf $(@F) $(BUILD)/$(HTTP_SO_NAME)
	$(Q)ln -sf $(HTTP_SO_NAME) $(BUILD)/libkvroute-http.so

$(HTTP_PC): ext/http/pool/kvroute-http.pc.in $(BUILD)/gen/prefix
	@mkdir -p $(@D)
	$(Q)sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(libdir)|' \
	    -e 's|@includedir@|$(includedir)|' -e 's|@version@|$(VERSION)|' \
	    $< > $@

$(BUILD)/call-cost: $(BUILD)/obj/bench/http/call_cost.o $(HTTP_STATIC) $(STATIC)
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $< $(HTTP_STATIC) $(STATIC) $(LDLIBS)

.PHONY: bench-http
bench-http: $(BUILD)/call-cost #- what a request costs in libkvroute-http: CPU
	@for request in '8192 0' '8192 64' '400000 0'; do \
	    $< $$request $(or $(REQUESTS),5000) || exit; done
