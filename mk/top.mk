# SPDX-License-Identifier: BSD-2-Clause
# kvroute-top, which needs curses and libcurl. Where they are, it is built and
# installed with the other tools. tests/nginx/check_top.sh runs it.

TOP := $(call files_of,tools/top)
# What it makes of a status; tests/tools tests that by itself.
TOP_TEXT := tools/top/reading.c tools/top/listing.c
TOP_TOOL := $(BUILD)/kvroute-top
TOP_IF_POSSIBLE := $(call with,$(TOP_TOOL),json-c bsd curl ncurses)

all: $(TOP_IF_POSSIBLE)

$(TOP_TOOL): $(call objects,$(TOP) tools/common/args.c \
    tools/common/args_table.c tools/common/rng.c $(HTTP)) $(STATIC) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) -lncurses -lcurl \
	    $(TOOL_LIBS) $(LDLIBS)
