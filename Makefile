# SPDX-License-Identifier: BSD-2-Clause
#
# kvroute: GNU make, no configure. `make help` lists the targets.
#
# Variables to set: CC, CXX, CFLAGS, CPPFLAGS, LDFLAGS, LDLIBS, prefix (and the
# directories below it), DESTDIR, BUILD. V=1 shows commands, WERROR=1 turns
# warnings into errors. Flags that the library needs are added separately.

MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

BUILD ?= build
CFLAGS ?= -O2 -g
CXX ?= c++
PKG_CONFIG ?= pkg-config

prefix ?= /usr/local
bindir ?= $(prefix)/bin
libdir ?= $(prefix)/lib
includedir ?= $(prefix)/include
mandir ?= $(prefix)/share/man
unitdir ?= $(prefix)/lib/systemd/system

Q := $(if $(V),,@)
say = @$(if $(V),:,printf '  %-8s %s\n' '$(1)' '$(2)')

HEADERS := include/kvroute.h include/kvroute_events.h \
	include/kvroute_http.h include/kvroute_replica.h

# The first one is the only place with the version.
VERSION := $(shell sed -n 's/^.define KVR_VERSION_STRING "\(.*\)"/\1/p' \
	include/kvroute.h)
SONAME := libkvroute.so.$(firstword $(subst ., ,$(VERSION)))

WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow \
	-Wcast-qual -Wstrict-prototypes -Wvla $(if $(WERROR),-Werror)
# These follow CFLAGS: decisions must be the same on every platform, names must
# not leak, and -r creates the single object of the static library.
NEEDED := -std=c11 -ffp-contract=off -fvisibility=hidden -fPIC -fno-lto \
	-fno-semantic-interposition -pthread
# Sanitizers, e.g. SAN=address,undefined.
SANITIZE := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer)

# ------------------------------------------------------------ what CC finds

# CC alone chooses the target: the tools beside it are those that it uses.
beside_cc = $(shell $(CC) -print-prog-name=$(1) 2> /dev/null)
ifeq ($(origin AR),default)
AR := $(call beside_cc,ar)
endif
OBJCOPY := $(or $(OBJCOPY),$(call beside_cc,objcopy))
STRIP ?= $(call beside_cc,strip)

# Headers of xxHash, uthash and the kernel are the same for every C library. A
# compiler with a folder of its own for headers, as musl-gcc, misses them.
SHARED_HEADERS := $(shell $(CC) $(CPPFLAGS) -E -include xxhash.h -x c \
	/dev/null > /dev/null 2>&1 || echo -idirafter /usr/include \
	-idirafter /usr/include/$$($(CC) -print-multiarch 2> /dev/null))

# One attempt to link all libraries that any program needs names those that are
# not there for this target.
ABSENT := $(shell LC_ALL=C $(CC) $(LDFLAGS) -shared -nostdlib -o /dev/null \
	-x c /dev/null -lbsd -ljson-c -lcurl -lncurses -lhiredis \
	-lssl -lcrypto -lnghttp2 -levent -lnats -lmsgpackc -lmsgpack-c -lzmq 2>&1 | \
	sed -n 's/.*\(cannot find\|find library\) -l\([a-z0-9-]*\).*/\2/p')
# Whether all of these are.
found = $(if $(filter $(ABSENT),$(1)),,yes)
# PROGRAMS, libraries: these programs where the libraries are; else `all` names
# them.
with = $(if $(call found,$(2)),$(1),$(eval LEFT_OUT += $(foreach \
	p,$(notdir $(1)),$(p):$(subst $(space),+,$(filter $(ABSENT),$(2))))))
empty :=
space := $(empty) $(empty)
comma := ,
define newline


endef

# -------------------------------------------------------------- directories

# Each directory of the library and of ext/http sees itself and those before it in
# its list; CONTRIBUTING.md describes them. -iquote, because system headers have
# names such as check.h and file.h too.
ROOMS := base hash region index learn lease events choice check api
HTTP_ROOMS := json request answer engine status fleet life
TOOL_ROOMS := common simulate replay
LIB_DIRS := $(ROOMS:%=lib/%)
HTTP_DIRS := $(HTTP_ROOMS:%=ext/http/%)
TOOL_DIRS := $(TOOL_ROOMS:%=tools/%)
BENCH_DIRS := bench/steps bench/threads bench/growth
TEST_DIRS := tests $(addprefix tests/,lib model torture http tools sync \
	events pick envoy)
# Programs that tests, demos and benchmarks run, and nobody installs.
STAND_INS := tests/stand-ins/engine tests/stand-ins/chats

quote = $(addprefix -iquote ,$(1))
# The words of list $(2) up to and including $(1).
upto = $(if $(2),$(firstword $(2)) $(if $(filter $(1),$(firstword $(2))),,\
	$(call upto,$(1),$(wordlist 2,99,$(2)))))
$(foreach d,$(LIB_DIRS),$(eval SEES_$d := $(call upto,$d,$(LIB_DIRS))))
$(foreach d,$(HTTP_DIRS),$(eval SEES_$d := $(call upto,$d,$(HTTP_DIRS))))
$(foreach d,$(TOOL_DIRS),$(eval SEES_$d := $(call upto,$d,$(TOOL_DIRS))))
SEES_ext/http/pool := $(HTTP_DIRS) ext/http/pool
$(foreach d,$(BENCH_DIRS),$(eval SEES_$d := \
	$(call upto,$d,$(BENCH_DIRS)) $(TOOL_DIRS)))
$(foreach d,$(TEST_DIRS) fuzz,$(eval SEES_$d := $(LIB_DIRS) $(TEST_DIRS) \
	$(TOOL_DIRS) $(STAND_INS) tools/top $(HTTP_DIRS) ext/http/pool \
	ext/daemon ext/sync ext/events ext/pick ext/envoy \
	$(BUILD)/gen))
SEES_tools/replay += $(BUILD)/gen
SEES_tests/foreign := tools/common
SEES_tests/foreign/libc := $(LIB_DIRS)
SEES_tests/nginx := $(LIB_DIRS)
SEES_tools := $(TOOL_DIRS)
$(foreach d,$(STAND_INS),$(eval SEES_$d := $d tools/common tools/simulate))
SEES_tools/probe := tools/probe tools/common $(HTTP_DIRS)
SEES_tools/top := tools/top tools/common $(HTTP_DIRS)
SEES_bench := $(BENCH_DIRS) $(TOOL_DIRS)
SEES_bench/nginx := $(HTTP_DIRS)
SEES_bench/sync := ext/sync $(TOOL_DIRS)
SEES_bench/events := ext/events tests/stand-ins/engine $(TOOL_DIRS)
SEES_ext/daemon := tools/common ext/http/json ext/daemon
SEES_ext/sync := $(SEES_ext/daemon) ext/sync
SEES_ext/events := $(SEES_ext/sync) ext/events
SEES_ext/pick := $(SEES_ext/daemon) ext/pick
SEES_ext/envoy := ext/http/json ext/pick ext/envoy
includes = -Iinclude $(call quote,$(SEES_$(patsubst %/,%,$(dir $(1)))))

compile_with = $(CC) $(1) $(SHARED_HEADERS) -D_DEFAULT_SOURCE \
	-D_POSIX_C_SOURCE=200809L \
	$(CPPFLAGS) $(WARNINGS) $(CFLAGS) $(NEEDED) $(SANITIZE)
compile = $(call compile_with,$(call includes,$(1)))
link = $(CC) $(CFLAGS) -pthread $(SANITIZE) $(LDFLAGS)

TOOL_LIBS := -ljson-c -lbsd -lm

# ------------------------------------------------------- what is in the tree

objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
files_of = $(sort $(wildcard $(addsuffix /*.c,$(1))))

LIB := $(call files_of,$(LIB_DIRS))
MODULES := $(call files_of,$(TOOL_DIRS))
# What every proxy needs.
HTTP := $(call files_of,$(HTTP_DIRS))
# Requests and servers of a proxy: libkvroute-http.
POOL := $(call files_of,ext/http/pool)
# The part that daemons share.
DAEMON := $(call files_of,ext/daemon) $(addprefix ext/http/json/,\
	metric_writer.c text_writer.c) $(addprefix tools/common/,args.c \
	args_table.c rng.c)
# What replicas exchange, without a bus.
WIRE := $(addprefix ext/sync/,bus_login.c bus_queue.c bus_url.c frame.c \
	redis_way.c siphash.c roster.c publish.c apply.c apply_records.c apply_workers.c \
	apply_loads.c chains.c roots.c give.c fetch.c proof.c)
BENCH_SOURCES := $(call files_of,bench $(BENCH_DIRS))
BENCH_TOOL := $(BUILD)/kvroute-bench
TRACE_TOOLS := $(BUILD)/kvroute-replay $(BUILD)/kvroute-tracegen
TOOLS := $(TRACE_TOOLS) $(BENCH_TOOL)
TOOLS_IF_POSSIBLE := $(call with,$(TOOLS),json-c bsd)
# The gateway needs what kvroute-engine does; see mk/events.mk.
EXAMPLES := $(patsubst %.c,$(BUILD)/%,$(filter-out examples/gateway.c,\
	$(call files_of,examples)))

STATIC := $(BUILD)/libkvroute.a
SHARED := $(BUILD)/libkvroute.so.$(VERSION)
PC := $(BUILD)/kvroute.pc

# ------------------------------------------------------------------ building

.PHONY: all left-out wide tidy clean help FORCE
all: $(STATIC) $(SHARED) $(PC) $(TOOLS_IF_POSSIBLE) $(EXAMPLES) left-out ## build the library, tools and examples

left-out: | wide #- name the programs that are not built, and why
	$(foreach p,$(LEFT_OUT),$(call say,SKIP,$(subst :,: $(CC) finds no \
	    lib,$(subst +,$(comma) lib,$(p))))$(newline))

wide: #- stop where a pointer has not 64 bits
	@! $(CC) $(CPPFLAGS) $(CFLAGS) -dM -E -x c /dev/null | \
	    grep '__SIZEOF_POINTER__ 4' > /dev/null || { echo 'kvroute needs' \
	    'a target of 64 bits, and that of $(CC) has 32' >&2; exit 1; }

$(BUILD)/obj/%.o: %.c $(BUILD)/gen/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(call compile,$<) -MMD -MP -c -o $@ $<

# Rewritten only when they change: new flags rebuild everything, and added or
# removed files relink everything.
$(BUILD)/gen/flags: TEXT = $(call compile_with) $(foreach \
	v,$(sort $(filter SEES_%,$(.VARIABLES))),$v:$($v))
$(BUILD)/gen/sources: TEXT = $(LIB) $(MODULES) $(HTTP) $(POOL) $(WIRE) $(DECODER) \
	$(STREAM) $(EVENTS) $(PICK) $(ENVOY) $(BENCH_SOURCES) $(TESTS) \
	$(HELPERS)
$(BUILD)/gen/flags $(BUILD)/gen/sources: FORCE | wide
	@mkdir -p $(@D)
	@printf '%s\n' '$(TEXT)' | cmp -s - $@ || printf '%s\n' '$(TEXT)' > $@

# The page of kvroute-replay, as bytes.
$(BUILD)/gen/replay_page.h: tools/replay/page.html
	@mkdir -p $(@D)
	$(Q)od -An -v -tu1 $< | sed 's/ *\([0-9][0-9]*\)/\1,/g' > $@
$(BUILD)/obj/tools/replay/report_page.o: $(BUILD)/gen/replay_page.h

# One object in which hidden names are local, so that they cannot collide.
$(BUILD)/kvroute.o: $(call objects,$(LIB)) $(BUILD)/gen/sources
	$(call say,LD,$@)
	$(Q)$(CC) -r -nostdlib -o $@ $(filter %.o,$^)
	$(Q)$(OBJCOPY) --localize-hidden $@

$(STATIC): $(BUILD)/kvroute.o
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $<

# Programs may have it mapped, so it is never written in place.
$(SHARED): $(call objects,$(LIB)) lib/kvroute.map $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -shared -Wl,-soname,$(SONAME) \
	    -Wl,--version-script=lib/kvroute.map -Wl,--as-needed -Wl,-z,now \
	    $(if $(SAN),,-Wl,-z,defs) -o $@.new $(filter %.o,$^) $(LDLIBS)
	$(Q)mv -f $@.new $@
	$(Q)ln -sf $(@F) $(BUILD)/$(SONAME)
	$(Q)ln -sf $(SONAME) $(BUILD)/libkvroute.so

$(PC): lib/kvroute.pc.in $(BUILD)/gen/prefix
	@mkdir -p $(@D)
	$(Q)sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(libdir)|' \
	    -e 's|@includedir@|$(includedir)|' -e 's|@version@|$(VERSION)|' \
	    lib/kvroute.pc.in > $@

$(BUILD)/gen/prefix: TEXT = $(prefix) $(libdir) $(includedir) $(VERSION)
$(BUILD)/gen/prefix: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(TEXT)' | cmp -s - $@ || printf '%s\n' '$(TEXT)' > $@

# Tools and examples use only the public interface of the library.
$(BENCH_TOOL): $(call objects,$(BENCH_SOURCES))
$(TRACE_TOOLS): $(BUILD)/%: $(BUILD)/obj/tools/%.o
$(TOOLS): $(call objects,$(MODULES)) $(STATIC) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(TOOL_LIBS) $(LDLIBS)

$(BUILD)/examples/%: $(BUILD)/obj/examples/%.o $(STATIC)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(link) -o $@ $< $(filter %-http.a,$^) $(STATIC) $(LDLIBS)

include mk/http.mk mk/python.mk mk/lua.mk mk/probe.mk mk/top.mk mk/sync.mk \
	mk/events.mk mk/pick.mk mk/envoy.mk mk/check.mk mk/install.mk mk/run.mk \
	mk/nginx.mk mk/llama.mk mk/vllm.mk mk/sglang.mk mk/dynamo.mk mk/rivals.mk \
	mk/clients.mk mk/coverage.mk

SOURCES := $(sort $(SYNC) $(STREAM) $(EVENTS) $(PICK) $(ENVOY) $(wildcard tools/*.c tools/*/*.c \
	tests/stand-ins/*/*.c \
	tests/nginx/*.c tests/dynamo/*.c bench/nginx/*.c bench/events/*.c bench/http/*.c bindings/*/*.c examples/*.c fuzz/*.c) \
	$(LIB) $(HTTP) $(POOL) $(WIRE) $(BUS) $(DECODER) $(BENCH_SOURCES) $(TESTS) \
	$(HELPERS) $(FOREIGN) tests/foreign/libc/peers.c $(SYNC_PROGRAMS) \
	$(EVENTS_PROGRAMS) tests/main.c)

-include $(patsubst %.o,%.d,$(call objects,$(SOURCES)))

# --------------------------------------------------------------------- other

# Written entry by entry: all of them are longer than a command may be.
escaped = $(subst ",\",$(subst \,\\,$(1)))
entry = {"directory": "$(call escaped,$(CURDIR))", "file": "$(1)", \
	"command": "$(call escaped,$(call compile,$(1)) -c $(1))"}
compile_commands.json: Makefile $(wildcard mk/*.mk) $(BUILD)/gen/flags $(BUILD)/gen/sources ## compilation database for editors
	$(call say,GEN,$@)
	$(file > $@,[$(call entry,$(firstword $(SOURCES))))
	$(foreach c,$(wordlist 2,9999,$(SOURCES)),$(file >> $@,$(comma) \
	    $(call entry,$(c))))
	$(file >> $@,])

TIDIED := $(filter lib/% ext/% tools/% tests/stand-ins/%,$(SOURCES))
# Skipped without clang-tidy: a failure to install it is not an error.
tidy: compile_commands.json $(BUILD)/gen/replay_page.h ## check lib/, ext/, tools/ and stand-ins by clang-tidy (half a minute); skipped without
	@CC='$(CC)' sh mk/deps.sh tidy || :
	@if ! command -v clang-tidy > /dev/null 2>&1; then \
	    echo '  SKIPPED  tidy: there is no clang-tidy'; \
	elif clang-tidy -p . --quiet $(TIDIED) 2> $(BUILD)/tidy.log; then \
	    echo '  tidy           $(words $(TIDIED)) files'; \
	else tail -n 3 $(BUILD)/tidy.log >&2; exit 1; fi

clean: ## remove all build results
	rm -rf $(BUILD) compile_commands.json

# A target whose comment begins with #- is for other targets or a rare purpose.
help: ## list targets; ALL=1 also those for rare purposes
	@awk -F '$(if $(ALL),#[#-] ,## )' '/^[a-z][a-z_.-]*:/ && NF > 1 { \
	    sub(/:.*/, "", $$1); printf "  %-22s %s\n", $$1, $$2 }' \
	    $(filter-out %.d,$(MAKEFILE_LIST))
	@echo 'T=name[,name] selects suites; V=1 shows commands; BUILD=directory.'
