#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# sglang.sh build [venv] - as tests/vllm/vllm.sh, whose modules it uses, with
# SGLang. Its kernels for CPUs are not on PyPI: sgl_kernel.py in shim/ is used
# instead, so scheduler, radix cache, events and server are SGLang's.
#
# shellcheck disable=SC2034
set -u

build=$1
venv=${2:-}
here=$(dirname "$0")
name=sglang
size='7 GB'
index_pin=einops
disk_wanted=11
memory_wanted=11
. tests/venv.sh

find_engine
[ -e "$venv/bin/sglang" ] || fail "there is no SGLang in $venv"
run_cases
