# SPDX-License-Identifier: BSD-2-Clause
# Decisions must be equal with every compiler and CPU.

.PHONY: check-foreign deps-foreign

deps-foreign: #- check for cross compilers and qemu; as root, install them
	@sh mk/deps.sh build foreign

check-foreign: deps-foreign ## compare decisions of gcc, clang, aarch64 and s390x; install for other targets; have glibc and musl share a region
	@+MAKE='$(MAKE)' sh mk/foreign.sh $(BUILD)

# Each with its own compiler, by mk/foreign.sh.
$(BUILD)/results: $(call objects,$(FOREIGN) tools/common/rng.c) $(STATIC)
$(BUILD)/peers: $(call objects,tests/foreign/libc/peers.c $(LIB))
$(BUILD)/results $(BUILD)/peers: $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o %.a,$^) $(LDLIBS)
