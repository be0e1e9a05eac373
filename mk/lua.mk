# SPDX-License-Identifier: BSD-2-Clause
# examples/kvroute.lua, in Debian's nginx.

.PHONY: check-lua check-lua-here

check-lua: deps-engine #- test the example for lua-nginx-module
	@CC='$(CC)' sh mk/deps.sh nginx lua
	@+$(MAKE) --no-print-directory check-lua-here

check-lua-here: $(BUILD)/kvroute-engine $(HTTP_SHARED) #- the same without installing dependencies
	@T='$(T)' sh tests/cases.sh lua $(BUILD) tests/lua/lua.sh
