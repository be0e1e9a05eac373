# SPDX-License-Identifier: BSD-2-Clause
# What engines say of their caches: a decoder, which needs msgpack-c, and
# kvroute-events, which needs libzmq and libcurl too. Where these are, it is built, tested
# and installed with the rest.

# Its name depends on its version.
MSGPACK := $(firstword $(filter-out $(ABSENT),msgpackc msgpack-c))
MSGPACK_LIBS := $(MSGPACK:%=-l%)
DECODER := $(if $(MSGPACK),$(addprefix ext/events/,batch.c build.c decode.c \
	drop.c dynamo.c engine.c event_name.c object.c pack.c partial.c \
	print.c trtllm.c))
# The order of numbered batches, which needs nothing.
STREAM := ext/events/stream.c
# What gives events to workers of regions, without a socket.
TARGETS := $(if $(MSGPACK),$(addprefix ext/events/,conf.c hub.c \
	pages.c say.c target.c tell.c))
# Suites and harnesses that cannot be without msgpack-c.
EVENTS_ABSENT := $(if $(MSGPACK),,$(filter-out %/test_stream.c,\
	$(wildcard tests/events/*.c)) \
	fuzz/fuzz_events.c)
# Programs of their own beside the suites.
EVENTS_PROGRAMS := tests/events/publisher.c tests/events/region.c

# Where cnats is, Dynamo's plane is read over NATS, too.
EVENTS_NATS := $(filter ext/sync/bus_nats.c,$(BUS))
EVENTS_NATS_LIBS := $(if $(EVENTS_NATS),-lnats)
EVENTS := $(addprefix ext/events/,attach.c check.c conf.c discover.c feed.c \
	follow.c http.c hub.c kvroute-events.c pages.c plane.c pull.c reader.c \
	record.c say.c serve.c sources.c target.c tell.c) \
	$(addprefix ext/sync/,bus.c bus_login.c bus_queue.c bus_url.c) \
	$(EVENTS_NATS)
EVENTS_TOOL := $(BUILD)/kvroute-events
EVENTS_IF_POSSIBLE := $(call with,$(EVENTS_TOOL),bsd json-c curl zmq \
	$(or $(MSGPACK),msgpackc))

all: $(EVENTS_IF_POSSIBLE)

$(EVENTS_TOOL): $(call objects,$(EVENTS) $(DAEMON) $(DECODER) $(STREAM)) $(STATIC) \
    $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(MSGPACK_LIBS) \
	    -lzmq $(EVENTS_NATS_LIBS) -lcurl -ljson-c -lbsd $(LDLIBS)

# An engine's part in the tests of the tool.
$(BUILD)/publisher: $(BUILD)/obj/tests/events/publisher.o
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $^ -lzmq $(LDLIBS)

# A router's.
$(BUILD)/region: $(BUILD)/obj/tests/events/region.o $(STATIC)
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $^ $(LDLIBS)

# The example whose requests are token ids.
$(BUILD)/gateway: $(BUILD)/obj/examples/gateway.o $(STATIC)
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $^ -levent -ljson-c $(LDLIBS)

$(BUILD)/event-cost: $(BUILD)/obj/bench/events/event_cost.o \
    $(call objects,ext/events/pages.c ext/events/target.c $(addprefix tests/stand-ins/engine/,\
    event_pack.c event_form.c packer.c) tools/common/rng.c $(DECODER)) $(STATIC) \
    $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(MSGPACK_LIBS) -ljson-c \
	    $(LDLIBS)

.PHONY: deps-events check-events check-events-here bench-event-cost

bench-event-cost: deps-events $(BUILD)/event-cost #- what it costs to know blocks by engines' names: time and memory
	@for blocks in 1 8 32 128; do \
	    $(BUILD)/event-cost $$blocks $(or $(PAIRS),400000) || exit; done; \
	for pages in '1 16' '1 64' '16 64'; do \
	    $(BUILD)/event-cost 8 $(or $(PAIRS),400000) $$pages || exit; done

deps-events: #- check for what kvroute-events and its tests need
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build test events nginx engine

check-events: deps-events ## test kvroute-events on streams of both framings; T=case
	@+$(MAKE) --no-print-directory check-events-here

check-events-here: $(BUILD)/publisher $(BUILD)/region $(EVENTS_TOOL) $(BUILD)/kvroute-engine $(BUILD)/kvroute-chats $(BUILD)/gateway nginx-module-here #- the same without installing dependencies
	@T='$(T)' sh tests/cases.sh events $(BUILD) $(addprefix \
	    tests/events/check_,$(addsuffix .sh,tokens fleet daemon engines \
	    events gateway))
