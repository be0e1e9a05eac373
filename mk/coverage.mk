# SPDX-License-Identifier: BSD-2-Clause
# What of lib/ the suites reach.
#
# Only lib/, and the suites that include a file of it, are compiled to count:
# without optimisation, which would copy branches and merge them. All else is
# what `check` has. What no test can reach is marked where it is, with the
# reason.

COUNTED := $(LIB) $(shell grep -l '^.include ".*[.]c"' /dev/null \
	$(filter tests/lib/%,$(TESTS)))
# Suites of tools and proxies reach nothing of lib/ that these do not.
COUNTED_SUITES := $(sort $(patsubst test_%.c,%,$(notdir $(filter tests/lib/% \
	tests/model/% tests/torture/%,$(TESTS)))))
COUNTED_OBJECTS := $(COUNTED:%.c=$(BUILD)/coverage/obj/%.o)

$(COUNTED_OBJECTS): private CC = gcc
$(COUNTED_OBJECTS): private CFLAGS = -O0 -g --coverage -fprofile-update=atomic
$(COUNTED_OBJECTS): $(BUILD)/coverage/obj/%.o: %.c $(BUILD)/gen/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(call compile,$<) -MMD -MP -c -o $@ $<

$(BUILD)/coverage/under-test/%.o: $(BUILD)/coverage/obj/%.o
	$(redirect)

-include $(COUNTED_OBJECTS:.o=.d)

# The objects of `check`; of a file that counts, the one that does.
counting = $(if $(filter $(COUNTED),$(2)),$(BUILD)/coverage/$(1)/$(2:.c=.o),\
	$(BUILD)/$(1)/$(2:.c=.o))

$(BUILD)/coverage/check: \
    $(foreach f,tests/main.c $(TESTS) $(HELPERS),$(call counting,obj,$f)) \
    $(foreach f,$(TESTED),$(call counting,under-test,$f)) \
    $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) --coverage -Wl,--wrap=region_lock -Wl,-u,__gcov_dump -o $@ \
	    $(filter %.o,$^) $(SUITE_LIBS)

.PHONY: coverage coverage-here

coverage: deps-coverage ## run the suites, and demand that they reach nearly all of lib/
	@+$(MAKE) --no-print-directory coverage-here

coverage-here: $(BUILD)/coverage/check #- the same without installing dependencies
	@find $(BUILD)/coverage -name '*.gcda' -delete
	@+AGAIN='make coverage' sh mk/check.sh $(BUILD)/coverage \
	    '$(or $(T),$(COUNTED_SUITES))' ''
	@sh mk/coverage.sh $(BUILD)/coverage
