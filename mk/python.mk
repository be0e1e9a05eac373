# SPDX-License-Identifier: BSD-2-Clause
# The Python package, and programs into which it is plugged.

# Everything in one file, which needs the C library alone.
PYTHON_LIBRARY := $(BUILD)/python/libkvroute-http.so

$(PYTHON_LIBRARY): $(BUILD)/obj/bindings/python/old_libc.o $(HTTP_STATIC) \
    $(STATIC) $(HTTP_MAP)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(link) -shared -s -Wl,-soname,libkvroute-http.so \
	    -Wl,--version-script=$(HTTP_MAP) -Wl,-z,now,-z,defs \
	    -Wl,--wrap=stat,--wrap=fstat -o $@.new $< -Wl,--whole-archive \
	    $(HTTP_STATIC) -Wl,--no-whole-archive $(STATIC) $(LDLIBS)
	$(Q)mv -f $@.new $@

.PHONY: wheel check-python check-python-here check-adapters bench-python

wheel: #- the Python package, with the library inside, into build/wheel
	@rm -rf $(BUILD)/wheel
	$(Q)KVROUTE_BUILD=$(BUILD) python3 -m pip wheel -q --no-deps \
	    -w $(BUILD)/wheel ./bindings/python

# Skipped without Python or its index: a failure to install is not an error.
check-python: deps-engine ## test the Python package, its types and its examples; 60 MB of PyPI packages, skipped without; T=case, PYTHON=
	@+$(MAKE) --no-print-directory check-python-here

check-python-here: $(BUILD)/kvroute-engine $(PYTHON_LIBRARY) #- the same without installing dependencies
	@T='$(T)' sh tests/python/python.sh $(BUILD) python

check-adapters: deps-engine #- test LiteLLM and Ray Serve with kvroute; 800 MB of PyPI packages, skipped without; T=case, PYTHON=
	@+$(MAKE) --no-print-directory $(BUILD)/kvroute-engine $(PYTHON_LIBRARY)
	@T='$(T)' sh tests/python/python.sh $(BUILD) adapters

bench-python: check-python #- the cost of a call in Python
	@$(BUILD)/python-test/venv/bin/python bench/python.py
