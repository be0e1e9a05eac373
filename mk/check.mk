# SPDX-License-Identifier: BSD-2-Clause
# Tests, also under sanitizers and valgrind, and fuzzing.

suites_of = $(filter-out $(EVENTS_ABSENT),$(sort $(wildcard $(foreach \
	s,$(1),$(addsuffix /test_$s.c,$(TEST_DIRS))))))
# ONLY are the suites to build; without it all.
TESTS := $(call suites_of,$(or $(ONLY),*))
SUITES := $(sort $(patsubst test_%.c,%,$(notdir $(TESTS))))
HELPERS := $(filter-out $(call suites_of,*) $(SYNC_PROGRAMS) \
	$(EVENTS_PROGRAMS) $(EVENTS_ABSENT) tests/main.c,\
	$(call files_of,$(TEST_DIRS)))
# Helpers that use Check are linked only to suites.
FUZZ_HELPERS := $(filter-out $(shell grep -lE '"(simulated|test)\.h"' \
	/dev/null $(HELPERS)),$(HELPERS))
# A program of its own, which check-foreign runs.
FOREIGN := $(call files_of,tests/foreign)
HARNESSES := $(patsubst fuzz/%.c,%,$(filter-out $(EVENTS_ABSENT) $(PICK_ABSENT),\
	$(sort $(wildcard fuzz/fuzz_*.c))))
REPLAYS := $(HARNESSES:fuzz_%=$(BUILD)/replay_%)
FUZZERS := $(HARNESSES:%=$(BUILD)/%)
FUZZ_SECONDS ?= 60
# Suites that start threads.
THREAD_SUITES := $(patsubst test_%.c,%,$(notdir $(shell \
	grep -l pthread_create /dev/null $(TESTS))))

split = $(subst $(comma), ,$(1))
# $(2) if $(T) is empty or contains $(1).
wanted = $(if $(T),$(if $(findstring $(1),$(T)),$(2)),$(2))
WANTED = $(call wanted,contract,all) $(call wanted,fuzz,$(REPLAYS))

CHECK_LIBS = $(shell $(PKG_CONFIG) --libs check 2>/dev/null || echo -lcheck)
# What ext/http is compared with.
ORACLE_LIBS := -lyajl
SUITE_LIBS = $(CHECK_LIBS) $(TOOL_LIBS) $(ORACLE_LIBS) $(MSGPACK_LIBS) \
	$(LDLIBS)

# Only the code under test allocates through tests/alloc.c.
ALLOCATORS := malloc calloc realloc reallocarray aligned_alloc posix_memalign \
	strdup mmap
# And only lib/ makes these system calls through tests/sys.c.
SYSTEM_CALLS := open fstat stat fcntl fchown fchmod madvise read pread readlink \
	kill ftruncate posix_fallocate getentropy
TESTED := $(LIB) $(MODULES) $(HTTP) $(POOL) $(WIRE) $(DECODER) $(STREAM) $(TARGETS) \
	$(PICK_PARTS) $(ENVOY) ext/daemon/file_writer.c \
	$(TOP_TEXT)
UNDER_TEST := $(TESTED:%.c=$(BUILD)/under-test/%.o)

define redirect
	@mkdir -p $(@D)
	$(Q)$(OBJCOPY) $(foreach a,$(ALLOCATORS),--redefine-sym $(a)=alloc_$(a)) \
	    $(if $(filter lib/%,$*),$(foreach \
	    c,$(SYSTEM_CALLS),--redefine-sym $(c)=sys_$(c))) $< $@
endef

$(BUILD)/under-test/%.o: $(BUILD)/obj/%.o
	$(redirect)

$(BUILD)/gen/suites.h: $(BUILD)/gen/sources
	@printf 'SUITE(%s)\n' $(SUITES) > $@
$(BUILD)/obj/tests/main.o: $(BUILD)/gen/suites.h
# What random tests draw from, unless KVR_SEED names another.
TEST_SEED := 20261126
$(BUILD)/obj/tests/main.o: private CPPFLAGS += -DTEST_SEED=$(TEST_SEED)

# Check's assertion macros pass no variadic arguments; clang warns about it.
$(BUILD)/obj/tests/%.o: private WARNINGS += $(if $(findstring clang,$(CC)),\
	-Wno-gnu-zero-variadic-macro-arguments)

# Objects of tests/foreign are not linked. Every check compiles them, because few
# machines can run check-foreign. tests/http/busy.c counts attempts to take the
# lock.
$(BUILD)/check: $(call objects,tests/main.c $(TESTS) $(HELPERS) $(FOREIGN)) \
    $(UNDER_TEST) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -Wl,--wrap=region_lock -o $@ $(filter-out $(call \
	    objects,$(FOREIGN)),$(filter %.o,$^)) $(SUITE_LIBS)

# fuzz_peer.c is called at each step of the library.
PEER := $(LIB:%.c=$(BUILD)/peer/%.o) $(filter-out \
	$(LIB:%.c=$(BUILD)/under-test/%.o),$(UNDER_TEST))

$(BUILD)/peer/%.o: %.c $(BUILD)/gen/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(call compile,$<) -finstrument-functions -MMD -MP -c -o $@ $<
	$(Q)$(OBJCOPY) $(foreach a,$(ALLOCATORS),--redefine-sym $(a)=alloc_$(a)) $@

-include $(LIB:%.c=$(BUILD)/peer/%.d)

$(BUILD)/replay_peer $(BUILD)/fuzz_peer: $(PEER)
$(BUILD)/replay_peer $(BUILD)/fuzz_peer: UNDER = $(PEER)
UNDER = $(UNDER_TEST)
# What to link: one build of the library.
fuzzed = $(filter-out $(filter-out $(UNDER),$(PEER) $(UNDER_TEST)),\
	$(filter %.o,$^))

$(REPLAYS): $(BUILD)/replay_%: $(BUILD)/obj/fuzz/fuzz_%.o \
    $(call objects,fuzz/replay_corpus.c $(FUZZ_HELPERS)) $(UNDER_TEST)
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(fuzzed) $(TOOL_LIBS) $(ORACLE_LIBS) \
	    $(MSGPACK_LIBS) $(LDLIBS)

# These harnesses turn bytes into small numbers. What libFuzzer learns of values
# that are compared cannot help it there, and took three quarters of the time.
# The same holds for the places that fuzz_usage compares with an answer.
# Edges of the model say nothing about lib/; nor does what is not linked.
FUZZ_NUMBERS := fuzz_ops fuzz_peer fuzz_region fuzz_retain
ifneq ($(findstring fuzzer,$(SAN)),)
$(call objects,$(LIB) $(HELPERS) fuzz/fuzz_usage.c $(FUZZ_NUMBERS:%=fuzz/%.c)) \
    $(LIB:%.c=$(BUILD)/peer/%.o): \
    private SANITIZE += -fno-sanitize-coverage=trace-cmp
$(call objects,$(filter tests/model/%,$(HELPERS))): \
    private SANITIZE += \
    -fno-sanitize-coverage=edge,indirect-calls,inline-8bit-counters,pc-table,stack-depth
endif
$(FUZZ_NUMBERS:%=$(BUILD)/%): fuzzed = $(filter-out \
    $(filter-out $(UNDER),$(PEER) $(UNDER_TEST)) \
    $(patsubst %.c,$(BUILD)/under-test/%.o,$(MODULES) $(HTTP) $(POOL) $(WIRE) \
        $(DECODER) $(STREAM) $(TARGETS) $(PICK_PARTS) $(ENVOY) \
        ext/daemon/file_writer.c) \
    $(call objects,$(filter tests/http/% tests/sync/% tests/events/% \
        tests/pick/% tests/envoy/%,$(HELPERS))),$(filter \
    %.o,$^))

$(FUZZERS): $(BUILD)/fuzz_%: $(BUILD)/obj/fuzz/fuzz_%.o \
    $(call objects,$(FUZZ_HELPERS)) $(UNDER_TEST)
	$(call say,LINK,$@)
	$(Q)$(link) -fsanitize=fuzzer -o $@ $(fuzzed) $(TOOL_LIBS) \
	    $(ORACLE_LIBS) $(MSGPACK_LIBS) $(LDLIBS)

.PHONY: check check-here check-suites check-clang check-asan check-tsan \
	check-valgrind check-model check-all mutate fuzz fuzz-here lint lint-here soak \
	soak-long

check: deps ## run all tests, T=name[,name] only these; installs dependencies
	@+$(MAKE) --no-print-directory check-here

export CC CXX PKG_CONFIG

# Also replays of fuzz corpora and the contract.
check-here: $(BUILD)/check $(WANTED) #- the same without installing dependencies
	@+MAKE='$(MAKE)' sh mk/check.sh $(BUILD) '$(T)' '$(HARNESSES)'

check-suites: $(BUILD)/check $(call wanted,fuzz,$(REPLAYS)) #- suites and fuzz corpora only
	@+sh mk/check.sh $(BUILD) \
	    '$(or $(T),$(SUITES) $(HARNESSES))' '$(HARNESSES)'

# Each variant has its own build directory.
variant = @+AGAIN='make $@' $(3) $(MAKE) --no-print-directory BUILD=$(BUILD)/$(1) $(2)
VARIANT_CC ?= clang

check-clang: deps-slow ## run the suites compiled by clang
	$(call variant,clang,CC=clang check-suites)

check-asan: deps-slow ## run the suites under AddressSanitizer and UBSan
	$(call variant,asan,CC=$(VARIANT_CC) SAN=address$(comma)undefined \
	    check-suites,$(SANITIZER_OPTIONS))

check-tsan: deps-slow ## run the suites that start threads under ThreadSanitizer
	$(call variant,tsan,CC=$(VARIANT_CC) SAN=thread T='$(or $(T),\
	    $(THREAD_SUITES))' ONLY='$(or $(call split,$(T)),$(THREAD_SUITES))' \
	    check-suites)

check-valgrind: deps-slow #- run shortened suites under valgrind
	$(call variant,valgrind,check-suites,CK_TIMEOUT_MULTIPLIER=4 \
	    KVR_TEST_PERCENT=$(or $(KVR_TEST_PERCENT),2) KVR_UNDER='$(UNDER_VALGRIND)')

UNDER_VALGRIND := valgrind -q --error-exitcode=99 --leak-check=full \
	--errors-for-leak-kinds=definite
SANITIZER_OPTIONS := ASAN_OPTIONS=allocator_may_return_null=1 \
	UBSAN_OPTIONS=print_stacktrace=1
# Freed memory is kept for many runs, but not until each finds its memory cold.
FUZZ_OPTIONS := $(patsubst ASAN_%,ASAN_%:quarantine_size_mb=16$\
	:malloc_context_size=12,$(SANITIZER_OPTIONS))

fuzz: deps-slow ## run each fuzzer for FUZZ_SECONDS=60; T=fuzz_name only these
	$(call variant,fuzz,CC=clang SAN=fuzzer-no-link$(comma)address$(comma)undefined \
	    fuzz-here,$(FUZZ_OPTIONS))

fuzz-here: $(FUZZERS) #- used by fuzz in its own build directory
	@sh mk/fuzz.sh $(BUILD) $(FUZZ_SECONDS) \
	    '$(or $(call split,$(T)),$(HARNESSES))' '$(FUZZ_NUMBERS)'

# Suites that draw from the seed.
RANDOM_SUITES := $(patsubst test_%.c,%,$(notdir $(shell \
	grep -lwE 'test_seed|by_chance' /dev/null $(TESTS))))
MINUTES ?= 10

soak: deps ## run random suites and fuzz inputs with new seeds, for MINUTES=10; T= as in check
	@+$(MAKE) --no-print-directory $(BUILD)/check $(REPLAYS)
	@sh mk/soak.sh $(BUILD) $(MINUTES) '$(or $(call split,$(T)),\
	    $(RANDOM_SUITES) $(HARNESSES))'

soak-long: deps #- 12,000 kills, 10^8 operations, stops of 5 s (15 minutes); T= as in check
	@+$(MAKE) --no-print-directory $(BUILD)/check
	@sh mk/soak_long.sh $(BUILD) '$(call split,$(T))'

MUTANTS ?= 300
SEED ?= 1
JOBS ?= 2
mutate: deps #- change lib/ in MUTANTS=300 places, one by one: do the suites notice? (hours)
	@sh mk/mutate.sh $(BUILD) $(MUTANTS) $(SEED) $(JOBS)

check-model: ## verify the model of the seqlock with spin
	@CC='$(CC)' sh mk/deps.sh build model
	@sh mk/model.sh $(BUILD)

check-all: ## run all checks, including slow ones
	@+for target in check check-clang check-asan check-tsan check-valgrind \
	    coverage check-model check-foreign fuzz lint tidy check-engine check-probe check-sync \
	    check-events check-pick check-haproxy check-nginx check-nginx-newer \
	    'check-nginx VALGRIND=1' check-clients check-python check-lua \
	    check-envoy check-envoy-module bench-routing-quick demo \
	    demo-envoy; do \
	    $(MAKE) --no-print-directory $$target || exit 1; done
	@sh mk/tally.sh $(BUILD)/tally $(BUILD)/*/tally

lint: deps ## check pages, scripts, includes, lengths, circles of files
	@+$(MAKE) --no-print-directory lint-here

# Files that must not use each other in circles.
STRAIGHT := $(LIB) $(HTTP) $(POOL) $(DAEMON) $(WIRE) $(STREAM) \
	$(if $(SYNC_IF_POSSIBLE),$(SYNC) $(BUS)) \
	$(if $(EVENTS_IF_POSSIBLE),$(EVENTS) $(DECODER) $(TARGETS)) \
	$(if $(PICK_IF_POSSIBLE),$(PICK)) $(ENVOY)

lint-here: $(call objects,$(sort $(STRAIGHT))) #- the same without installing dependencies
	@sh mk/circles.sh $^
	@+MAKE='$(MAKE)' sh mk/lint.sh

include mk/foreign.mk
