# SPDX-License-Identifier: BSD-2-Clause
#
# kvroute: GNU make, no configure. `make help` lists the targets.
#
# Yours to set: CC, CXX, CFLAGS, CPPFLAGS, LDFLAGS, LDLIBS, prefix (and the
# folders below it), DESTDIR, BUILD. V=1 shows the commands, WERROR=1 makes
# warnings errors. What the library itself needs is added apart from yours.

MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

BUILD ?= build
CFLAGS ?= -O2 -g
CXX ?= c++
PKG_CONFIG ?= pkg-config
OBJCOPY ?= objcopy

prefix ?= /usr/local
bindir ?= $(prefix)/bin
libdir ?= $(prefix)/lib
includedir ?= $(prefix)/include
mandir ?= $(prefix)/share/man

Q := $(if $(V),,@)
say = @$(if $(V),:,printf '  %-8s %s\n' '$(1)' '$(2)')

# The version stands in the header and nowhere else.
VERSION := $(shell sed -n 's/^.define KVR_VERSION_STRING "\(.*\)"/\1/p' \
	include/kvroute.h)
SONAME := libkvroute.so.$(firstword $(subst ., ,$(VERSION)))

WARNINGS := -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow \
	-Wcast-qual -Wstrict-prototypes -Wvla $(if $(WERROR),-Werror)
# These come after yours: decisions must be the same everywhere, names must
# not leak, and the one object of the static library is made by ld -r.
NEEDED := -std=c11 -ffp-contract=off -fvisibility=hidden -fPIC -fno-lto \
	-fno-semantic-interposition -pthread
# A variant's sanitizers, e.g. SAN=address,undefined.
SANITIZE := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer)

# What each folder may include: the tools see the public header only.
INCLUDE_lib := -Iinclude
INCLUDE_examples := -Iinclude
INCLUDE_bench := -Iinclude -Iexamples -Iexamples/proxy
INCLUDE_tests := -Iinclude -Ilib -Itests -Iexamples -Iexamples/proxy \
	-I$(BUILD)/gen
INCLUDE_fuzz := $(INCLUDE_tests)

folder = $(firstword $(subst /, ,$(1)))
compile = $(CC) $(INCLUDE_$(call folder,$(1))) -D_DEFAULT_SOURCE \
	-D_POSIX_C_SOURCE=200809L $(CPPFLAGS) $(WARNINGS) $(CFLAGS) $(NEEDED) \
	$(SANITIZE)
link = $(CC) $(CFLAGS) -pthread $(SANITIZE) $(LDFLAGS)

LIB_LIBS := -lbsd
TOOL_LIBS := -ljson-c -lbsd -lm
PROXY_LIBS := -lyajl

# ------------------------------------------------------- what is in the tree

objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

LIB := $(sort $(wildcard lib/*.c))
# A file of examples/ with a main is a program, others are modules of tools.
MAINS := $(shell grep -lE '^(int )?main\>' /dev/null examples/*.c)
MODULES := $(filter-out $(MAINS),$(sort $(wildcard examples/*.c)))
# What proxies share; no tool needs it.
PROXY := $(sort $(wildcard examples/proxy/*.c))
TOOL_MAINS := $(filter examples/replay.c examples/tracegen.c,$(MAINS))
BENCH := $(sort $(wildcard bench/*.c))
BENCH_TOOL := $(if $(BENCH),$(BUILD)/kvroute-bench)
TRACE_TOOLS := $(TOOL_MAINS:examples/%.c=$(BUILD)/kvroute-%)
TOOLS := $(TRACE_TOOLS) $(BENCH_TOOL)
EXAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,\
	$(filter-out $(TOOL_MAINS),$(MAINS)))

STATIC := $(BUILD)/libkvroute.a
SHARED := $(BUILD)/libkvroute.so.$(VERSION)
PC := $(BUILD)/kvroute.pc

# ------------------------------------------------------------------ building

.PHONY: all clean help FORCE
all: $(STATIC) $(SHARED) $(PC) $(TOOLS) $(EXAMPLES) ## build everything but tests

$(BUILD)/obj/%.o: %.c $(BUILD)/gen/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(call compile,$<) -MMD -MP -c -o $@ $<

# Written anew only when it changes, so that other flags rebuild everything
# and a file that came or went links everything.
$(BUILD)/gen/flags: TEXT = $(call compile,lib)
$(BUILD)/gen/sources: TEXT = $(LIB) $(MODULES) $(PROXY) $(BENCH) $(TESTS) \
	$(HELPERS)
$(BUILD)/gen/flags $(BUILD)/gen/sources: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(TEXT)' | cmp -s - $@ || printf '%s\n' '$(TEXT)' > $@

# One object whose hidden names have become local: nothing else to collide.
$(BUILD)/kvroute.o: $(call objects,$(LIB)) $(BUILD)/gen/sources
	$(call say,LD,$@)
	$(Q)$(LD) -r -o $@ $(filter %.o,$^)
	$(Q)$(OBJCOPY) --localize-hidden $@

$(STATIC): $(BUILD)/kvroute.o
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $<

$(SHARED): $(call objects,$(LIB)) kvroute.map $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -shared -Wl,-soname,$(SONAME) \
	    -Wl,--version-script=kvroute.map -Wl,--as-needed -Wl,-z,now \
	    $(if $(SAN),,-Wl,-z,defs) -o $@ $(filter %.o,$^) $(LIB_LIBS) $(LDLIBS)
	$(Q)ln -sf $(@F) $(BUILD)/$(SONAME)
	$(Q)ln -sf $(SONAME) $(BUILD)/libkvroute.so

$(PC): kvroute.pc.in $(BUILD)/gen/prefix
	@mkdir -p $(@D)
	$(Q)sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(libdir)|' \
	    -e 's|@includedir@|$(includedir)|' -e 's|@version@|$(VERSION)|' \
	    kvroute.pc.in > $@

$(BUILD)/gen/prefix: TEXT = $(prefix) $(libdir) $(includedir) $(VERSION)
$(BUILD)/gen/prefix: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(TEXT)' | cmp -s - $@ || printf '%s\n' '$(TEXT)' > $@

# Tools and examples use the library as anybody would.
$(BENCH_TOOL): $(call objects,$(BENCH))
$(TRACE_TOOLS): $(BUILD)/kvroute-%: $(BUILD)/obj/examples/%.o
$(TOOLS): $(call objects,$(MODULES)) $(STATIC) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(TOOL_LIBS) $(LIB_LIBS) \
	    $(LDLIBS)

$(BUILD)/examples/%: $(BUILD)/obj/examples/%.o $(STATIC)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(link) -o $@ $< $(STATIC) $(LIB_LIBS) $(LDLIBS)

include mk/check.mk mk/install.mk mk/run.mk mk/nginx.mk mk/llama.mk

SOURCES := $(wildcard */*.c examples/engine/*.c bench/nginx/*.c \
	tests/nginx/*.c) $(PROXY)

-include $(patsubst %.o,%.d,$(call objects,$(SOURCES)))

# ---------------------------------------------------------------- the others

compile_commands.json: $(BUILD)/gen/flags $(BUILD)/gen/sources ## for editors
	$(call say,GEN,$@)
	@{ echo '['; \
	$(foreach c,$(SOURCES),printf '%s{"directory":"%s","file":"%s",\
	"command":"%s -c %s"}' "$$comma" '$(CURDIR)' '$(c)' \
	'$(call compile,$(c))' '$(c)'; comma=,; ) echo ']'; } > $@

clean: ## remove everything that was built
	rm -rf $(BUILD) compile_commands.json

help: ## this list
	@awk -F ':|## ' '/^[a-z][a-z_.-]*:.*## / \
	    { printf "  %-22s %s\n", $$1, $$NF }' $(filter-out %.d,$(MAKEFILE_LIST))
	@echo 'T=name[,name] picks suites; V=1 shows commands; BUILD=folder.'
