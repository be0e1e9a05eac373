# SPDX-License-Identifier: BSD-2-Clause
# The library beside the router whose decisions KVR_COST_DYNAMO repeats: that of
# NVIDIA Dynamo, from PyPI, in the build directory or in DYNAMO_VENV, a virtual
# environment that has it already.

$(BUILD)/mirror: $(BUILD)/obj/tests/dynamo/mirror.o $(STATIC)
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $^ $(LDLIBS)

.PHONY: check-dynamo check-dynamo-here

# Skipped without Python or the index: a failure to install it is not an error.
check-dynamo: deps-build #- compare decisions with Dynamo's KvRouter; 40 MB of PyPI packages, skipped without; T=case, DYNAMO_VENV=
	@CC='$(CC)' sh mk/deps.sh vllm || :
	@+$(MAKE) --no-print-directory check-dynamo-here

check-dynamo-here: $(BUILD)/mirror #- the same without installing dependencies
	@T='$(T)' sh tests/dynamo/dynamo.sh $(BUILD) '$(DYNAMO_VENV)'
