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

# ---------------------------------------------------------------- the rooms

# Each room of the library sees itself and those before it in this list, and
# nothing else: CONTRIBUTING.md says what is in which. -iquote, because names
# like check.h and file.h are the system's too.
ROOMS := base hash region index cache choice check api
TOOL_ROOMS := common simulate page replay
LIB_DIRS := $(ROOMS:%=lib/%)
TOOL_DIRS := $(TOOL_ROOMS:%=tools/%)
BENCH_DIRS := bench/steps bench/threads bench/growth
TEST_DIRS := tests $(addprefix tests/,lib model torture http tools)

quote = $(addprefix -iquote ,$(1))
# The words of list $(2) up to and with $(1).
upto = $(if $(2),$(firstword $(2)) $(if $(filter $(1),$(firstword $(2))),,\
	$(call upto,$(1),$(wordlist 2,99,$(2)))))
$(foreach d,$(LIB_DIRS),$(eval SEES_$d := $(call upto,$d,$(LIB_DIRS))))
$(foreach d,$(TOOL_DIRS),$(eval SEES_$d := $(call upto,$d,$(TOOL_DIRS))))
$(foreach d,$(BENCH_DIRS),$(eval SEES_$d := \
	$(call upto,$d,$(BENCH_DIRS)) $(TOOL_DIRS)))
$(foreach d,$(TEST_DIRS) fuzz,$(eval SEES_$d := $(LIB_DIRS) $(TEST_DIRS) \
	$(TOOL_DIRS) tools/engine ext/http $(BUILD)/gen))
SEES_tools := $(TOOL_DIRS)
SEES_tools/engine := tools/engine tools/common tools/simulate
SEES_tools/chats := tools/chats tools/common
SEES_bench := $(BENCH_DIRS) $(TOOL_DIRS)
SEES_bench/nginx := ext/http
SEES_ext/http := ext/http
includes = -Iinclude $(call quote,$(SEES_$(patsubst %/,%,$(dir $(1)))))

compile_with = $(CC) $(1) -D_DEFAULT_SOURCE -D_POSIX_C_SOURCE=200809L \
	$(CPPFLAGS) $(WARNINGS) $(CFLAGS) $(NEEDED) $(SANITIZE)
compile = $(call compile_with,$(call includes,$(1)))
link = $(CC) $(CFLAGS) -pthread $(SANITIZE) $(LDFLAGS)

LIB_LIBS := -lbsd
TOOL_LIBS := -ljson-c -lbsd -lm
HTTP_LIBS := -lyajl

# ------------------------------------------------------- what is in the tree

objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
files_of = $(sort $(wildcard $(addsuffix /*.c,$(1))))

LIB := $(call files_of,$(LIB_DIRS))
MODULES := $(call files_of,$(TOOL_DIRS))
# What every proxy needs, whatever its name.
HTTP := $(call files_of,ext/http)
BENCH := $(call files_of,bench $(BENCH_DIRS))
BENCH_TOOL := $(BUILD)/kvroute-bench
TRACE_TOOLS := $(BUILD)/kvroute-replay $(BUILD)/kvroute-tracegen
TOOLS := $(TRACE_TOOLS) $(BENCH_TOOL)
EXAMPLES := $(patsubst %.c,$(BUILD)/%,$(call files_of,examples))

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
$(BUILD)/gen/flags: TEXT = $(call compile_with) $(foreach \
	v,$(sort $(filter SEES_%,$(.VARIABLES))),$v:$($v))
$(BUILD)/gen/sources: TEXT = $(LIB) $(MODULES) $(HTTP) $(BENCH) $(TESTS) \
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

$(SHARED): $(call objects,$(LIB)) lib/kvroute.map $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -shared -Wl,-soname,$(SONAME) \
	    -Wl,--version-script=lib/kvroute.map -Wl,--as-needed -Wl,-z,now \
	    $(if $(SAN),,-Wl,-z,defs) -o $@ $(filter %.o,$^) $(LIB_LIBS) $(LDLIBS)
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

# Tools and examples use the library as anybody would.
$(BENCH_TOOL): $(call objects,$(BENCH))
$(TRACE_TOOLS): $(BUILD)/%: $(BUILD)/obj/tools/%.o
$(TOOLS): $(call objects,$(MODULES)) $(STATIC) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(STATIC) $(TOOL_LIBS) $(LIB_LIBS) \
	    $(LDLIBS)

$(BUILD)/examples/%: $(BUILD)/obj/examples/%.o $(STATIC)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(link) -o $@ $< $(STATIC) $(LIB_LIBS) $(LDLIBS)

include mk/check.mk mk/install.mk mk/run.mk mk/nginx.mk mk/llama.mk

SOURCES := $(wildcard tools/*.c tools/*/*.c tests/nginx/*.c bench/nginx/*.c \
	examples/*.c fuzz/*.c) $(LIB) $(HTTP) $(BENCH) $(TESTS) $(HELPERS) \
	tests/main.c

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
