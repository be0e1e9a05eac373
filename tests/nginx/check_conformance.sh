#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_conformance.sh - a case of check.sh: conformance.jsonl, by conformance.py.
#
# Variables of check.sh and setup.sh:
# shellcheck disable=SC2034,SC2154

quick_cases="${quick_cases:-} conformance"

conformance()
{
	set -- "$work" "$(free_port)" "$(free_port)" "$(free_port)" \
	    "$(free_port)"
	http_lines=$(python3 "$here/conformance.py" conf "$@")
	upstream_ports=$3
	start_nginx kvroute
	python3 "$here/conformance.py" run "$@"
	settled
}
