# SPDX-License-Identifier: BSD-2-Clause
# The buses between replicas, each where its libraries are: hiredis with
# OpenSSL, and cnats.

BUS_REDIS := $(call found,hiredis ssl crypto)
BUS_NATS := $(call found,nats)
BUS := $(addprefix ext/sync/,bus.c $(if $(BUS_REDIS),bus_redis.c tls.c) \
	$(if $(BUS_NATS),bus_nats.c))
BUS_LIBS := $(if $(BUS_REDIS),-lhiredis -lssl -lcrypto) \
	$(if $(BUS_NATS),-lnats)

# Programs of their own beside the suites.
SYNC_PROGRAMS := $(addprefix tests/sync/,check_bus.c relay.c star.c forge.c \
	router.c drive.c) $(addprefix bench/sync/,traffic.c late_start.c cost.c \
	flow.c)

$(BUILD)/check-bus $(BUILD)/relay $(BUILD)/star $(BUILD)/forge: $(BUILD)/%: $(call objects,$(WIRE) $(BUS) \
    tools/common/rng.c) $(STATIC) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(BUS_LIBS) $(LDLIBS)
$(BUILD)/check-bus: $(BUILD)/obj/tests/sync/check_bus.o
$(BUILD)/relay: $(BUILD)/obj/tests/sync/relay.o
$(BUILD)/star: $(BUILD)/obj/tests/sync/star.o
$(BUILD)/forge: $(BUILD)/obj/tests/sync/forge.o

# Routers' parts in the tests of the daemon.
$(BUILD)/router: $(BUILD)/obj/tests/sync/router.o
$(BUILD)/drive: $(BUILD)/obj/tests/sync/drive.o
$(BUILD)/sync-flow: $(BUILD)/obj/bench/sync/flow.o
$(addprefix $(BUILD)/,router drive sync-flow): \
    $(call objects,tools/common/rng.c) $(STATIC)
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(LDLIBS)

$(BUILD)/late-start: $(BUILD)/obj/bench/sync/late_start.o $(STATIC)
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(LDLIBS)

.PHONY: bench-late-start bench-late-start-here
bench-late-start: deps-sync #- how soon a router knows what others do when it begins; BLOCKS=1000000
	@+$(MAKE) --no-print-directory bench-late-start-here

bench-late-start-here: $(BUILD)/late-start $(BUILD)/kvroute-sync #- the same without installing dependencies
	@BLOCKS='$(BLOCKS)' sh bench/sync/late_start.sh $(BUILD)

$(BUILD)/traffic: $(BUILD)/obj/bench/sync/traffic.o $(call objects,$(MODULES)) \
    $(STATIC) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(TOOL_LIBS) $(LDLIBS)

.PHONY: deps-sync check-sync check-sync-here soak-sync bench-sync

deps-sync: #- the same for what replicas exchange and its tests
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build test sync

check-sync: deps-sync ## test replicas and their buses on real servers and networks; T=case
	@+$(MAKE) --no-print-directory check-sync-here

# What check_net.sh needs.
NET := $(addprefix $(BUILD)/,star forge router drive kvroute-sync)

check-sync-here: $(BUILD)/check-bus $(BUILD)/relay $(NET) #- the same without installing dependencies
	@T='$(T)' sh tests/cases.sh sync $(BUILD) \
	    $(addprefix tests/sync/check_,bus.sh sync.sh servers.sh net.sh)

KILLS ?= 200
soak-sync: $(NET) #- replicas, daemons and buses die and stop at KILLS=200 random points; SEED=1
	@T='$(or $(T),deaths_at_random_points)' KILLS='$(KILLS)' \
	    SEED='$(SEED)' LIMIT=0 \
	    sh tests/cases.sh sync $(BUILD) tests/sync/check_net.sh

# Without a bus: frames are handed on.
$(BUILD)/sync-cost: $(BUILD)/obj/bench/sync/cost.o $(call objects,$(WIRE) \
    tools/common/rng.c) $(STATIC) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(LDLIBS)

bench-sync: $(addprefix $(BUILD)/,sync-cost sync-flow traffic star late-start kvroute-sync) #- measure replicas: cost, throughput, latency, hits (five minutes); PARTS=hits SEED=1
	@PARTS='$(PARTS)' SEED='$(SEED)' ARMS='$(ARMS)' BLOCKS='$(BLOCKS)' sh bench/sync/sync.sh $(BUILD) \
	    ../shared/traces

# The daemon, where a bus is.
SYNC_TOOL := $(BUILD)/kvroute-sync
SYNC_IF_POSSIBLE := $(call with,$(SYNC_TOOL),bsd \
	$(if $(BUS_REDIS)$(BUS_NATS),,hiredis ssl crypto nats))
SYNC := $(addprefix ext/sync/,kvroute-sync.c check.c late.c site.c site_log.c \
	status_text.c)

all: $(SYNC_IF_POSSIBLE)

$(SYNC_TOOL): $(call objects,$(SYNC) $(DAEMON) $(WIRE) $(BUS)) $(STATIC) \
    $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(BUS_LIBS) -lbsd $(LDLIBS)
