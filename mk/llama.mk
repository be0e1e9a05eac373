# SPDX-License-Identifier: BSD-2-Clause
# Tests with a real engine: llama.cpp, from npm, in the build directory.

.PHONY: check-llama check-llama-here

# Skipped without node: a failure to install it is not an error.
check-llama: deps-nginx #- test nginx with llama.cpp; 85 MB of npm packages, skipped without
	@CC='$(CC)' sh mk/deps.sh llama || :
	@+$(MAKE) --no-print-directory check-llama-here

check-llama-here: $(BUILD)/kvroute-chats nginx-module-here #- the same without installing dependencies
	@sh tests/llama/llama.sh $(BUILD)
