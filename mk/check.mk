# SPDX-License-Identifier: BSD-2-Clause
# Tests, their variants under checkers, and fuzzing.

TESTS := $(sort $(wildcard $(addsuffix /test_*.c,$(TEST_DIRS))))
SUITES := $(sort $(patsubst test_%.c,%,$(notdir $(TESTS))))
HELPERS := $(filter-out $(TESTS) tests/main.c,$(call files_of,$(TEST_DIRS)))
# Those that know Check are linked to suites alone.
FUZZ_HELPERS := $(filter-out $(shell grep -lE '"(simulated|test)\.h"' \
	/dev/null $(HELPERS)),$(HELPERS))
HARNESSES := $(patsubst fuzz/%.c,%,$(sort $(wildcard fuzz/fuzz_*.c)))
REPLAYS := $(HARNESSES:fuzz_%=$(BUILD)/replay_%)
FUZZERS := $(HARNESSES:%=$(BUILD)/%)
FUZZ_SECONDS ?= 60
# Only there can threads meet.
THREAD_SUITES := $(patsubst test_%.c,%,$(notdir $(shell \
	grep -l pthread_create /dev/null $(TESTS))))

empty :=
comma := ,
# $(2) if $(T) is empty or speaks of $(1).
wanted = $(if $(T),$(if $(findstring $(1),$(T)),$(2)),$(2))
WANTED = $(call wanted,contract,all) $(call wanted,fuzz,$(REPLAYS))
split = $(subst $(comma), ,$(1))

CHECK_LIBS = $(shell $(PKG_CONFIG) --libs check 2>/dev/null || echo -lcheck)

# The code under test allocates through tests/alloc.c, nothing else does.
ALLOCATORS := malloc calloc realloc reallocarray aligned_alloc posix_memalign \
	strdup mmap
UNDER_TEST := $(patsubst %.c,$(BUILD)/under-test/%.o,$(LIB) $(MODULES) \
	$(HTTP))

$(BUILD)/under-test/%.o: $(BUILD)/obj/%.o
	@mkdir -p $(@D)
	$(Q)$(OBJCOPY) $(foreach a,$(ALLOCATORS),--redefine-sym $(a)=alloc_$(a)) $< $@

$(BUILD)/gen/suites.h: $(BUILD)/gen/sources
	@printf 'SUITE(%s)\n' $(SUITES) > $@
$(BUILD)/obj/tests/main.o: $(BUILD)/gen/suites.h

# Assertions of Check are macros with no argument too many for clang only.
$(BUILD)/obj/tests/%.o: WARNINGS += $(if $(findstring clang,$(CC)),\
	-Wno-gnu-zero-variadic-macro-arguments)

$(BUILD)/check: $(call objects,tests/main.c $(TESTS) $(HELPERS)) \
    $(UNDER_TEST) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(CHECK_LIBS) $(TOOL_LIBS) \
	    $(HTTP_LIBS) $(LIB_LIBS) $(LDLIBS)

$(REPLAYS): $(BUILD)/replay_%: $(BUILD)/obj/fuzz/fuzz_%.o \
    $(call objects,fuzz/replay_corpus.c $(FUZZ_HELPERS)) $(UNDER_TEST)
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(TOOL_LIBS) $(HTTP_LIBS) \
	    $(LIB_LIBS) $(LDLIBS)

$(FUZZERS): $(BUILD)/fuzz_%: $(BUILD)/obj/fuzz/fuzz_%.o \
    $(call objects,$(FUZZ_HELPERS)) $(UNDER_TEST)
	$(call say,LINK,$@)
	$(Q)$(link) -fsanitize=fuzzer -o $@ $(filter %.o,$^) $(TOOL_LIBS) \
	    $(HTTP_LIBS) $(LIB_LIBS) $(LDLIBS)

.PHONY: check check-here check-suites check-clang check-asan check-tsan \
	check-valgrind check-model check-all fuzz fuzz-here lint soak

check: deps ## all tests; T=name[,name] only these; installs what is missing
	@+$(MAKE) --no-print-directory check-here

export CC CXX PKG_CONFIG

# Replays and the checks of the house count beside the suites.
check-here: $(BUILD)/check $(WANTED) ## the same, with what is installed
	@+MAKE='$(MAKE)' sh mk/check.sh $(BUILD) '$(T)' '$(HARNESSES)'

check-suites: $(BUILD)/check $(call wanted,fuzz,$(REPLAYS)) ## the same without header, pages, install
	@+sh mk/check.sh $(BUILD) \
	    '$(or $(T),$(SUITES) $(HARNESSES))' '$(HARNESSES)'

# Variants build apart. Tests are slower there: more time, less to do.
variant = @+$(3) $(MAKE) --no-print-directory BUILD=$(BUILD)/$(1) $(2)
VARIANT_CC ?= clang

check-clang: deps-slow ## the suites, compiled by clang
	$(call variant,clang,CC=clang check-suites)

check-asan: deps-slow ## the suites under Address- and UndefinedBehaviorSanitizer
	$(call variant,asan,CC=$(VARIANT_CC) SAN=address$(comma)undefined \
	    check-suites,CK_TIMEOUT_MULTIPLIER=5 $(SANITIZER_OPTIONS))

check-tsan: deps-slow ## the suites that start threads under ThreadSanitizer
	$(call variant,tsan,CC=$(VARIANT_CC) SAN=thread T='$(or $(T),\
	    $(THREAD_SUITES))' check-suites,CK_TIMEOUT_MULTIPLIER=10)

check-valgrind: deps-slow ## the suites under valgrind, shortened
	$(call variant,valgrind,check-suites,CK_TIMEOUT_MULTIPLIER=60 \
	    KVR_TEST_PERCENT=$(or $(KVR_TEST_PERCENT),2) KVR_UNDER='$(UNDER_VALGRIND)')

UNDER_VALGRIND := valgrind -q --error-exitcode=99 --leak-check=full \
	--errors-for-leak-kinds=definite
SANITIZER_OPTIONS := ASAN_OPTIONS=allocator_may_return_null=1 \
	UBSAN_OPTIONS=print_stacktrace=1

fuzz: deps-slow ## each fuzzer for FUZZ_SECONDS=60; T=fuzz_name only these
	$(call variant,fuzz,CC=clang SAN=fuzzer-no-link$(comma)address$(comma)undefined \
	    fuzz-here,$(SANITIZER_OPTIONS))

fuzz-here: $(FUZZERS) ## what fuzz does in its own build folder
	@sh mk/fuzz.sh $(BUILD) $(FUZZ_SECONDS) \
	    '$(or $(call split,$(T)),$(HARNESSES))'

soak: deps ## 12,000 deaths, 10^8 operations, stops of 5 s: 15 minutes; T= as in check
	@+$(MAKE) --no-print-directory $(BUILD)/check
	@sh mk/soak.sh $(BUILD) '$(call split,$(T))'

check-model: ## the protocol of lock and version, searched through by spin
	@CC='$(CC)' sh mk/deps.sh build model
	@sh mk/model.sh $(BUILD)

check-all: ## everything that is slow too
	@+for target in check check-clang check-asan check-tsan check-valgrind \
	    check-model check-foreign fuzz lint check-engine check-nginx \
	    'check-nginx VALGRIND=1'; do \
	    $(MAKE) --no-print-directory $$target || exit 1; done
	@sh mk/tally.sh $(BUILD)/tally $(BUILD)/*/tally

lint: deps ## pages, scripts, lengths of lines and functions
	@sh mk/lint.sh

include mk/foreign.mk
