# SPDX-License-Identifier: BSD-2-Clause
# Decisions must be equal with every compiler and CPU.

.PHONY: check-foreign deps-foreign

deps-foreign: #- check for cross compilers and qemu; as root, install them
	@sh mk/deps.sh build foreign

FOREIGN_FLAGS = -Iinclude $(call quote,$(LIB_DIRS) tests/model tools/common) \
	-D_DEFAULT_SOURCE -D_POSIX_C_SOURCE=200809L $(WARNINGS) $(NEEDED)

check-foreign: deps-foreign ## compare decisions of gcc, clang, aarch64 and s390x builds; have glibc and musl share a region
	@FLAGS='$(FOREIGN_FLAGS)' sh mk/foreign.sh $(BUILD)
