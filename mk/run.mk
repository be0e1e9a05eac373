# SPDX-License-Identifier: BSD-2-Clause
# Dependencies, demos and benchmarks.

SAMPLE := $(BUILD)/sample.jsonl
REAL_TRACE := $(wildcard ../shared/traces/conversation_trace.jsonl)

CURVES := blocks workers prompt shared chat fan stairs parted
# PLOTS=bench/growth/plots draws those of the repository anew.
PLOTS ?= $(BUILD)/growth

.PHONY: deps deps-build deps-page deps-slow deps-coverage deps-plot demo demo-here \
	bench bench-here \
	bench-retain bench-retain-here bench-routing bench-routing-here \
	bench-routing-quick bench-routing-search bench-replicas \
	bench-windows bench-events \
	growth growth-here

deps: ## check for dependencies; as root on Debian, install what is missing
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build test

deps-build: #- the same for what is built, without tests
	@CC='$(CC)' sh mk/deps.sh build

deps-page: #- the same for the browser test of HTML pages
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build test page

deps-slow: #- the same for check-asan, check-tsan, check-valgrind, fuzz
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build test slow

deps-coverage: #- the same for coverage
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build test coverage

deps-plot: #- the same for growth
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build plot

demo: deps-build ## chats on 8 modelled engines, by round robin and by kvroute (a minute with the build)
	@+$(MAKE) --no-print-directory demo-here

$(SAMPLE): $(BUILD)/kvroute-tracegen
	$(call say,GEN,$@)
	$(Q)$< --seed 1 > $@

demo-here: $(BUILD)/kvroute-replay $(SAMPLE) #- the same without installing dependencies
	@printf '%s\n' '' 'Chats on modelled engines, routed by turns' \
	    '(round-robin), by the cost of NVIDIA Dynamo (dynamo) and by' \
	    "kvroute's (balanced). What is known of an engine's cache: that" \
	    'a prefix stays for 120 s (ttl=120), what responses report as' \
	    'cached (feedback), or how much it holds (capacity). The same with' \
	    'charts is in $(BUILD)/demo.html.' '' | fmt -w 79
	@$< --simulate -q --capacity 100000 --report $(BUILD)/demo.html \
	    $(addprefix --policy ,round-robin dynamo balanced \
	    balanced:feedback balanced:capacity) $(SAMPLE)

bench: deps ## measure the cost of each step on the sample trace and that of ../shared, and the longest calls
	@+$(MAKE) --no-print-directory bench-here

bench-here: $(BUILD)/kvroute-bench $(SAMPLE) #- the same without installing dependencies
	@for trace in $(SAMPLE) $(REAL_TRACE); do \
	    echo; echo "$${trace##*/}"; $< $$trace || exit 1; done
	@echo; $< --history workers=4096
	@for plan in $$(grep -v '^\#' bench/steps/slow.txt); do \
	    echo; echo "$$plan"; $< --history "$$plan" || exit 1; done

bench-retain: deps #- compare the cost of retention by TTL, capacity and feedback
	@+$(MAKE) --no-print-directory bench-retain-here

bench-retain-here: $(BUILD)/kvroute-bench $(SAMPLE) #- the same without installing dependencies
	@$< --retain all $(or $(REAL_TRACE),$(SAMPLE))

bench-routing: deps ## compare policies on modelled engines, in all scenarios (up to an hour)
	@+$(MAKE) --no-print-directory bench-routing-here

# SCENARIOS="shared conv-8-1m held" are families, scenarios and marks of them;
# SEEDS, POLICIES and RUNS="4-*", too, choose a part; SEED=2 are other loads of
# the search. Results in $(BUILD)/routing are kept and not measured again, but
# for those of bench-routing-quick; remove them after a change.
ROUTING = @$(foreach name,SEEDS POLICIES RUNS SEED MINUTES, \
	$(name)='$($(name))') python3 bench/routing/routing.py

bench-routing-here: $(TRACE_TOOLS) #- the same without installing dependencies
	$(ROUTING) scenarios $^ ../shared/traces $(BUILD)/routing/scenarios \
	    $(SCENARIOS)

# Limits are loose, as one seed has no interval: this finds a cost that
# collapses, as the first one did by factors of 2 to 600.
bench-routing-quick: SEEDS := 1
bench-routing-quick: export WORST := 2
bench-routing-quick: export RETURNS := 0.3
bench-routing-quick: $(TRACE_TOOLS) #- a few scenarios of each family with one seed (3 minutes)
	@rm -rf $(BUILD)/routing/quick
	$(ROUTING) scenarios $^ ../shared/traces $(BUILD)/routing/quick quick

bench-routing-search: $(TRACE_TOOLS) #- search at random for loads that are routed badly; MINUTES=10
	$(ROUTING) search $^ $(BUILD)/routing/search

bench-replicas: $(TRACE_TOOLS) #- several routers in front of the same engines (half an hour)
bench-events: $(TRACE_TOOLS) #- what events of engines are worth (ten minutes)
bench-windows: $(TRACE_TOOLS) #- routing that knows of sliding windows (half an hour)
bench-replicas bench-events bench-windows: bench-%:
	$(ROUTING) $* $^ ../shared/traces $(BUILD)/routing/$*

growth: deps-plot #- write tables and plots of how costs grow; PLOTS=directory for plots
	@+$(MAKE) --no-print-directory growth-here

growth-here: $(BUILD)/kvroute-bench #- the same without installing dependencies
	@mkdir -p $(BUILD)/growth
	@for curve in $(CURVES); do \
	    $< --growth $$curve > $(BUILD)/growth/$$curve.tsv || exit 1; done
	@sh bench/growth/plot.sh $(BUILD)/growth '$(PLOTS)'
