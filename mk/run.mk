# SPDX-License-Identifier: BSD-2-Clause
# Setting up, and running what was built.

SAMPLE := $(BUILD)/sample.jsonl
REAL_TRACE := $(wildcard ../shared/traces/conversation_trace.jsonl)

CURVES := blocks workers prompt shared chat fan stairs
# bench/growth/plots has what bench/RESULTS.md shows.
PLOTS ?= $(BUILD)/growth

.PHONY: deps deps-page deps-slow deps-plot demo demo-here bench bench-here \
	bench-retain bench-retain-here bench-routing bench-routing-here growth growth-here

deps: ## checks for what is needed; as root on Debian, installs what is missing
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build test

deps-page: ## the same for the test that opens pages in a browser
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build test page

deps-slow: ## the same for check-asan, check-tsan, check-valgrind, fuzz
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build test slow

deps-plot: ## the same for growth
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build plot

demo: deps ## the sample trace over 8 workers, beside round robin
	@+$(MAKE) --no-print-directory demo-here

$(SAMPLE): $(BUILD)/kvroute-tracegen
	$(call say,GEN,$@)
	$(Q)$< --seed 1 > $@

demo-here: $(BUILD)/kvroute-replay $(SAMPLE) ## the same, with what is installed
	@$< --workers 8 --policy dynamo --policy round-robin $(SAMPLE)
	@echo; echo 'The same on modelled engines with small caches:'; echo
	@$< --simulate -q --capacity 100000 --policy round-robin \
	    --policy dynamo --policy balanced --policy balanced:feedback \
	    --policy balanced:capacity --report $(BUILD)/demo.html $(SAMPLE)
	@echo; echo 'As a page to look at: $(BUILD)/demo.html'

bench: deps ## cost of each step on the sample trace, and on ../shared's
	@+$(MAKE) --no-print-directory bench-here

bench-here: $(BUILD)/kvroute-bench $(SAMPLE) ## the same, with what is installed
	@for trace in $(SAMPLE) $(REAL_TRACE); do \
	    echo; echo "$${trace##*/}"; $< $$trace || exit 1; done

bench-retain: deps ## the same by TTL, by capacity, by feedback, in turns
	@+$(MAKE) --no-print-directory bench-retain-here

bench-retain-here: $(BUILD)/kvroute-bench $(SAMPLE) ## the same, with what is installed
	@$< --retain all $(or $(REAL_TRACE),$(SAMPLE))

bench-routing: deps ## figures of routing on modelled engines, some minutes
	@+$(MAKE) --no-print-directory bench-routing-here

# ROUTING="8 1000000 1" is a part: numbers of workers, capacities, seeds.
bench-routing-here: $(BUILD)/kvroute-replay ## the same, with what is installed
	@ROUTING='$(ROUTING)' sh bench/routing/routing.sh $< '$(REAL_TRACE)' \
	    $(BUILD)/routing

growth: deps-plot ## how costs grow: tables and plots; PLOTS=folder of the latter
	@+$(MAKE) --no-print-directory growth-here

growth-here: $(BUILD)/kvroute-bench ## the same, with what is installed
	@mkdir -p $(BUILD)/growth
	@for curve in $(CURVES); do \
	    $< --growth $$curve > $(BUILD)/growth/$$curve.tsv || exit 1; done
	@sh bench/growth/plot.sh $(BUILD)/growth '$(PLOTS)'
	@sh bench/growth/tables.sh $(BUILD)/growth
