# SPDX-License-Identifier: BSD-2-Clause
# nginx end to end: the module, engines to put behind it, and users of them.

# The driver has a main and modules of its own; of examples/ it takes a few.
CHATS := $(sort $(wildcard examples/engine/chats*.c))
CHATS_MODULES := examples/args.c examples/progress.c examples/rng.c
CURL_LIBS = $(shell $(PKG_CONFIG) --libs libcurl 2>/dev/null || echo -lcurl)

.PHONY: deps-engine

deps-engine: ## the same for the engines' stand-in and the users that drive it
	@CC='$(CC)' CXX='$(CXX)' sh scripts/deps.sh build test engine

$(BUILD)/kvroute-chats: $(call objects,$(CHATS) $(CHATS_MODULES)) $(STATIC) \
    $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(CURL_LIBS) $(TOOL_LIBS) \
	    $(LIB_LIBS) $(LDLIBS)
