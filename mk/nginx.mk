# SPDX-License-Identifier: BSD-2-Clause
# nginx end to end: the module, the test engine behind it, and its clients.

# kvroute-chats, the client.
CHATS := $(call files_of,tests/stand-ins/chats)
CHATS_MODULES := tools/common/args.c tools/common/args_table.c \
	tools/common/draw.c tools/common/progress.c tools/common/rng.c tools/common/session_gen.c \
	tools/common/session_trace.c tools/simulate/sessions.c

.PHONY: deps-engine

deps-engine: #- the same for the test engine and its clients
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build test engine

$(BUILD)/kvroute-chats: $(call objects,$(CHATS) $(CHATS_MODULES)) $(STATIC) \
    $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) -lcurl $(TOOL_LIBS) \
	    $(LDLIBS)

# Its events need libzmq and msgpack-c; without, it says so when it is asked.
ENGINE_AT := tests/stand-ins/engine
ENGINE_EVENTS := $(addprefix $(ENGINE_AT)/,event_pack.c event_socket.c \
	events.c packer.c)
ENGINE := $(filter-out $(if $(EVENTS_IF_POSSIBLE),$(ENGINE_AT)/events_none.c,\
	$(ENGINE_EVENTS)),$(call files_of,$(ENGINE_AT)))
ENGINE_MODULES := tools/common/args.c tools/common/args_table.c \
	tools/common/rng.c tools/simulate/engine_cache.c tools/simulate/engine_model.c \
	tools/simulate/engine_window.c

$(BUILD)/kvroute-engine: $(call objects,$(ENGINE) $(ENGINE_MODULES)) \
    $(STATIC) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) -levent \
	    $(if $(EVENTS_IF_POSSIBLE),-lzmq $(MSGPACK_LIBS)) $(TOOL_LIBS) \
	    $(LDLIBS)

# The parts without HTTP have unit tests.
ENGINE_TESTED := ask ask_members ask_prompt ask_state blocks kept output serving tokenizer words
$(BUILD)/check $(BUILD)/coverage/check: \
    $(ENGINE_TESTED:%=$(BUILD)/under-test/$(ENGINE_AT)/%.o)

# What writes events has msgpack-c, which ends the program without memory.
$(BUILD)/check $(BUILD)/coverage/check: $(if $(MSGPACK),$(call objects,$(addprefix $(ENGINE_AT)/,\
    event_form.c event_pack.c packer.c)))

# So have those of kvroute-chats.
CHATS_TESTED := chats_agents chats_answer chats_history chats_text
$(BUILD)/check $(BUILD)/coverage/check: \
    $(CHATS_TESTED:%=$(BUILD)/under-test/tests/stand-ins/chats/%.o)

.PHONY: check-engine check-engine-here

check-engine: deps-engine ## test responses, streams, metrics and faults of kvroute-engine
	@+$(MAKE) --no-print-directory check-engine-here

check-engine-here: $(BUILD)/kvroute-engine #- the same without installing dependencies
	@T='$(T)' sh tests/cases.sh engine $(BUILD) tests/tools/engine.sh

.PHONY: nginx-module nginx-module-here deps-nginx

deps-nginx: #- the same for the nginx module and its tests
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build nginx engine

nginx-module: deps-nginx ## build the nginx module; NGINX_SRC=directory if not for Debian's nginx
	@+$(MAKE) --no-print-directory nginx-module-here

nginx-module-here: $(STATIC) #- the same without installing dependencies
	$(call say,NGINX,$(BUILD)/nginx/ngx_http_upstream_kvroute_module.so)
	$(Q)MAKEFLAGS= CC='$(CC)' SAN='$(SAN)' bash mk/nginx_module.sh $(BUILD) '$(NGINX_SRC)'

# The same with limits so small that tests need no long bodies, and with a file
# that stops the reading of bodies.
SMALL := -DNGX_HTTP_KVROUTE_PIECE=1024 -DNGX_HTTP_KVROUTE_SHORT=1024 \
	-DNGX_HTTP_KVROUTE_TURN_NS=0 -DNGX_HTTP_KVROUTE_STOP=\"stop\" \
	-DNGX_HTTP_KVROUTE_LEFT_MS=1000 -DNGX_HTTP_KVROUTE_YIELD_MS=60000

.PHONY: nginx-module-small

nginx-module-small: nginx-module-here #- the same for tests: small limits, and a file that stops the reading of bodies
	$(call say,NGINX,$(BUILD)/nginx/small/ngx_http_upstream_kvroute_module.so)
	$(Q)MAKEFLAGS= CC='$(CC)' SAN='$(SAN)' VARIANT=small DEFINES='$(SMALL)' \
	    bash mk/nginx_module.sh $(BUILD) '$(NGINX_SRC)'

# What nginx-module has built for some nginx is installed as it is: built again
# here, it could be for another one.
NGINX_MODULE := $(BUILD)/nginx/ngx_http_upstream_kvroute_module.so
NGINX_MODULES ?= $(shell PATH="$$PATH:/usr/sbin:/sbin" nginx -V 2>&1 | \
	sed -n 's/.*--modules-path=\([^ ]*\).*/\1/p')
nginx_modules = $(or $(NGINX_MODULES),$(error nginx does not say where its \
	modules are: set NGINX_MODULES))

.PHONY: nginx-install nginx-uninstall

nginx-install: ## install what nginx-module built, below DESTDIR; NGINX_MODULES=directory if not that of nginx -V
	@[ -e $(NGINX_MODULE) ] || { \
	    echo 'nginx-install: there is no module: make nginx-module' >&2; \
	    exit 1; }
	@[ -z "$$(find ext/nginx ext/http include lib -type f \
	    -newer $(NGINX_MODULE))" ] || { echo 'nginx-install: the module is' \
	    'older than its sources: make nginx-module' >&2; exit 1; }
	$(INSTALL) -d $(DESTDIR)$(nginx_modules)
	$(call replace,644,$(NGINX_MODULE),$(DESTDIR)$(nginx_modules))

nginx-uninstall: #- remove what nginx-install installed
	rm -f $(DESTDIR)$(nginx_modules)/$(notdir $(NGINX_MODULE))

.PHONY: demo-nginx demo-nginx-here

NGINX_TOOLS := $(BUILD)/kvroute-chats $(BUILD)/kvroute-engine

demo-nginx: deps-nginx ## agents by least_conn, by hash and by kvroute in nginx (two minutes)
	@+$(MAKE) --no-print-directory demo-nginx-here

demo-nginx-here: $(NGINX_TOOLS) nginx-module-here #- the same without installing dependencies
	@sh bench/nginx/demo.sh $(BUILD)

.PHONY: demo-sync demo-sync-here

demo-sync: deps-nginx deps-sync #- agents by two nginx, each alone and with kvroute-sync between them
	@+$(MAKE) --no-print-directory demo-sync-here

demo-sync-here: $(NGINX_TOOLS) $(SYNC_IF_POSSIBLE) nginx-module-here #- the same without installing dependencies
	@sh bench/nginx/demo_sync.sh $(BUILD)

# The cost of reading a body, compared with hashing its text and with YAJL.
$(BUILD)/floor: $(call objects,bench/nginx/body_floor.c $(HTTP)) $(STATIC) \
    $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(ORACLE_LIBS) \
	    $(LDLIBS)

# Preloaded into nginx, it measures the turns of its loop.
$(BUILD)/turns.so: bench/nginx/turns.c
	$(call say,LINK,$@)
	$(Q)$(CC) -std=c11 -O2 -Wall -Wextra -shared -fPIC -o $@ $< -ldl

# The same of other JSON libraries; nothing else needs them, or C++.
$(BUILD)/rivals: bench/nginx/body_rivals.cc $(STATIC)
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build rivals
	$(call say,CXX,$@)
	$(Q)$(CXX) -std=c++17 -O2 -msse4.2 -mpclmul -Iinclude -o $@ $< $(STATIC) \
	    -lsimdjson $(LDLIBS)

# A process that can be stopped while it holds the lock of an index, and one
# that stops another so. Both use the library from inside.
$(BUILD)/hold $(BUILD)/catch: $(BUILD)/%: \
    $(BUILD)/obj/tests/nginx/%.o $(call objects,$(LIB)) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(LDLIBS)

.PHONY: check-nginx check-nginx-here

check-nginx: deps-nginx ## test the module, also with faults; CHECK_NGINX=quick, T=case, VALGRIND=1, NGINX_BIN=
	@+$(MAKE) --no-print-directory check-nginx-here

check-nginx-here: $(NGINX_TOOLS) $(TOP_TOOL) $(BUILD)/kvroute-replay $(BUILD)/hold $(BUILD)/catch $(SYNC_IF_POSSIBLE) nginx-module-here nginx-module-small #- the same without installing dependencies
	@T='$(T)' sh tests/nginx/check.sh $(BUILD)

.PHONY: nginx-newer check-nginx-newer check-nginx-newer-here

nginx-newer: #- fetch a newer nginx and its headers into build/nginx-newer; NGINX_SUITE=sid
	@sh mk/nginx_newer.sh $(BUILD)

check-nginx-newer: deps-nginx ## test the module on a newer nginx, some cases; skipped if it cannot be fetched; T=, CHECK_NGINX=quick
	@+$(MAKE) --no-print-directory check-nginx-newer-here

check-nginx-newer-here: $(NGINX_TOOLS) $(TOP_TOOL) $(BUILD)/kvroute-replay $(BUILD)/hold $(BUILD)/catch $(SYNC_IF_POSSIBLE) $(STATIC) #- the same without installing dependencies
	@CC='$(CC)' SMALL='$(SMALL)' T='$(T)' sh tests/nginx/check_newer.sh $(BUILD)

.PHONY: bench-nginx bench-nginx-here

bench-nginx: deps deps-nginx ## measure gain and cost in nginx (20 minutes); BENCH="hits cpu", BENCH_REQUESTS=, ROUNDS=
	@+$(MAKE) --no-print-directory bench-nginx-here

bench-nginx-here: $(NGINX_TOOLS) $(BUILD)/floor $(BUILD)/turns.so nginx-module-here #- the same without installing dependencies
	$(Q)MAKEFLAGS= CC='$(CC)' bash mk/nginx_module.sh $(BUILD) \
	    '$(NGINX_SRC)' bench/nginx/module
	@sh bench/nginx/bench.sh $(BUILD)
