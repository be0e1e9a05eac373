# SPDX-License-Identifier: BSD-2-Clause
# nginx end to end: the module, engines to put behind it, and users of them.

# The users that drive it have a main and modules of their own.
CHATS := $(call files_of,tools/chats)
CHATS_MODULES := tools/common/args.c tools/common/progress.c tools/common/rng.c
CURL_LIBS = $(shell $(PKG_CONFIG) --libs libcurl 2>/dev/null || echo -lcurl)

.PHONY: deps-engine

deps-engine: ## the same for the engines' stand-in and the users that drive it
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build test engine

$(BUILD)/kvroute-chats: $(call objects,$(CHATS) $(CHATS_MODULES)) $(STATIC) \
    $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(CURL_LIBS) $(TOOL_LIBS) \
	    $(LIB_LIBS) $(LDLIBS)

ENGINE := $(call files_of,tools/engine)
ENGINE_MODULES := tools/common/args.c tools/simulate/engine_cache.c tools/common/rng.c
EVENT_LIBS = $(shell $(PKG_CONFIG) --libs libevent 2>/dev/null || echo -levent)

$(BUILD)/kvroute-engine: $(call objects,$(ENGINE) $(ENGINE_MODULES)) \
    $(STATIC) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(EVENT_LIBS) \
	    $(TOOL_LIBS) $(LIB_LIBS) $(LDLIBS)

# What of it is without HTTP is tested like the library.
ENGINE_TESTED := ask ask_prompt serving tokenizer words
$(BUILD)/check: \
    $(ENGINE_TESTED:%=$(BUILD)/under-test/tools/engine/%.o)

.PHONY: check-engine check-engine-here

check-engine: deps-engine ## kvroute-engine over HTTP: answers, streams, metrics, faults
	@+$(MAKE) --no-print-directory check-engine-here

check-engine-here: $(BUILD)/kvroute-engine ## the same, with what is installed
	@sh tests/tools/engine.sh $(BUILD)

.PHONY: nginx-module nginx-module-here deps-nginx

deps-nginx: ## the same for the nginx module and what tests it
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build proxy nginx engine

nginx-module: deps-nginx ## the nginx module; NGINX_SRC=folder for another nginx than Debian's
	@+$(MAKE) --no-print-directory nginx-module-here

nginx-module-here: $(STATIC) ## the same, with what is installed
	$(call say,NGINX,$(BUILD)/nginx/ngx_http_upstream_kvroute_module.so)
	$(Q)MAKEFLAGS= CC='$(CC)' SAN='$(SAN)' bash ext/nginx/module.sh $(BUILD) '$(NGINX_SRC)'

.PHONY: demo-nginx demo-nginx-here

NGINX_TOOLS := $(BUILD)/kvroute-chats $(BUILD)/kvroute-engine

demo-nginx: deps-nginx ## chats through nginx by round robin, hash and kvroute, half a minute
	@+$(MAKE) --no-print-directory demo-nginx-here

demo-nginx-here: $(NGINX_TOOLS) nginx-module-here ## the same, with what is installed
	@sh ext/nginx/demo.sh $(BUILD)

# What reading a body costs, beside the JSON library and the hashing alone.
$(BUILD)/floor: $(call objects,bench/nginx/body_floor.c $(HTTP)) $(STATIC) \
    $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(HTTP_LIBS) \
	    $(LIB_LIBS) $(LDLIBS)

# A process that can be stopped while it has the lock of an index.
$(BUILD)/hold: $(call objects,tests/nginx/hold.c) $(STATIC) \
    $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $< $(STATIC) $(LIB_LIBS) $(LDLIBS)

.PHONY: check-nginx check-nginx-here

check-nginx: deps-nginx ## faults of engines, clients, nginx's processes; CHECK_NGINX=quick, T=, VALGRIND=1
	@+$(MAKE) --no-print-directory check-nginx-here

check-nginx-here: $(NGINX_TOOLS) $(BUILD)/kvroute-replay $(BUILD)/hold nginx-module-here ## the same, with what is installed
	@T='$(T)' sh tests/nginx/check.sh $(BUILD)

.PHONY: bench-nginx bench-nginx-here

bench-nginx: deps-nginx ## gain and cost in nginx, a quarter of an hour; BENCH="hits cpu" parts, BENCH_REQUESTS=, ROUNDS=
	@+$(MAKE) --no-print-directory bench-nginx-here

bench-nginx-here: $(NGINX_TOOLS) $(BUILD)/floor nginx-module-here ## the same, with what is installed
	$(Q)MAKEFLAGS= CC='$(CC)' bash ext/nginx/module.sh $(BUILD) \
	    '$(NGINX_SRC)' bench/nginx/module
	@sh bench/nginx/bench.sh $(BUILD)
