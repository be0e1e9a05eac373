# SPDX-License-Identifier: BSD-2-Clause
# Tests with a real engine: SGLang on CPU, from PyPI, in the build directory or
# in SGLANG_VENV, a virtual environment that has it already.

.PHONY: check-sglang check-sglang-here

# Skipped without Python or the index: a failure to install it is not an error.
check-sglang: deps-events #- test nginx, events and a gateway with SGLang on CPU; 7 GB of PyPI packages, skipped without; T=case, SGLANG_VENV=
	@CC='$(CC)' sh mk/deps.sh vllm || :
	@+$(MAKE) --no-print-directory check-sglang-here

check-sglang-here: $(BUILD)/gateway $(BUILD)/kvroute-probe $(EVENTS_TOOL) nginx-module-here #- the same without installing dependencies
	@T='$(T)' sh tests/sglang/sglang.sh $(BUILD) '$(SGLANG_VENV)'
