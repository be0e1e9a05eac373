# SPDX-License-Identifier: BSD-2-Clause
# kvroute beside other gateways, from PyPI, in the build directory.

$(BUILD)/nodelay.so: bench/rivals/nodelay.c
	$(call say,LINK,$@)
	$(Q)$(CC) -std=c11 -O2 -Wall -Wextra -shared -fPIC -o $@ $< -ldl

.PHONY: bench-rivals bench-rivals-here

# INTO=bench writes the page and the chart of the repository. A short form:
# ROUNDS=1 SECONDS=10 LOAD=agents RIVAL=kvroute,smg.
bench-rivals: deps-nginx ## kvroute beside SMG, SGLang's, vLLM's and Dynamo's routers (hours); LOAD=, RIVAL=, ROUNDS=, SECONDS=
	@CC='$(CC)' sh mk/deps.sh vllm || :
	@+$(MAKE) --no-print-directory bench-rivals-here

bench-rivals-here: $(NGINX_TOOLS) nginx-module-here $(BUILD)/nodelay.so #- the same without installing dependencies
	@PATH="$$PATH:/usr/sbin:/sbin" PYTHONDONTWRITEBYTECODE=1 LOAD='$(LOAD)' RIVAL='$(RIVAL)' \
	    ROUNDS='$(ROUNDS)' SECONDS='$(SECONDS)' INTO='$(INTO)' \
	    python3 bench/rivals/rivals.py $(BUILD)
