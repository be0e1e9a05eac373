# SPDX-License-Identifier: BSD-2-Clause
# Tests with real clients: SDKs from npm, in the build directory.

.PHONY: check-clients check-clients-here

# Skipped without node: a failure to install it is not an error.
check-clients: deps-nginx ## test nginx with the SDKs of OpenAI, Anthropic and Vercel; 80 MB of npm packages, skipped without
	@CC='$(CC)' sh mk/deps.sh clients || :
	@+$(MAKE) --no-print-directory check-clients-here

check-clients-here: $(BUILD)/kvroute-engine nginx-module-here #- the same without installing dependencies
	@sh tests/clients/clients.sh $(BUILD)
