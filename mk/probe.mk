# SPDX-License-Identifier: BSD-2-Clause
# kvroute-probe, which needs libcurl. Where that is, it is built and installed
# with the other tools.

PROBE := $(call files_of,tools/probe)
PROBE_MODULES := tools/common/args.c tools/common/args_table.c \
	tools/common/rng.c \
	$(wildcard ext/http/engine/capacity*.c) ext/http/engine/probe.c \
	ext/http/engine/response.c ext/http/engine/samples.c \
	ext/http/json/body_string.c ext/http/json/json_finder.c \
	ext/http/json/json_reader.c ext/http/json/text_hold.c
PROBE_TOOL := $(BUILD)/kvroute-probe
PROBE_IF_POSSIBLE := $(call with,$(PROBE_TOOL),json-c bsd curl)

all: $(PROBE_IF_POSSIBLE)

$(PROBE_TOOL): $(call objects,$(PROBE) $(PROBE_MODULES)) $(STATIC) \
    $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) -lcurl \
	    $(TOOL_LIBS) $(LDLIBS)

.PHONY: check-probe check-probe-here

check-probe: deps-engine ## test kvroute-probe on engines of each dialect; T=case
	@+$(MAKE) --no-print-directory check-probe-here

check-probe-here: $(PROBE_TOOL) $(BUILD)/kvroute-engine #- the same without installing dependencies
	@T='$(T)' sh tests/cases.sh probe $(BUILD) tests/tools/probe.sh
