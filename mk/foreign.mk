# SPDX-License-Identifier: BSD-2-Clause
# The same decisions by every compiler, on every machine.

.PHONY: check-foreign deps-foreign

deps-foreign: ## compilers for other machines and qemu, for check-foreign
	@sh mk/deps.sh build foreign

FOREIGN_FLAGS = -Iinclude $(call quote,$(LIB_DIRS) tests/model tools/common) \
	-D_DEFAULT_SOURCE -D_POSIX_C_SOURCE=200809L $(WARNINGS) $(NEEDED)

check-foreign: deps-foreign ## decisions must be equal on aarch64, s390x, for gcc and clang
	@FLAGS='$(FOREIGN_FLAGS)' sh mk/foreign.sh $(BUILD)
