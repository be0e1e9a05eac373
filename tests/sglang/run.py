# SPDX-License-Identifier: BSD-2-Clause
"""run.py BUILD SCRATCH TALLY - the cases of this folder and those of tests/vllm
that are about any engine, or those that $T names. sglang.sh begins it."""
import os
import signal
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(here, '../vllm'))

import api
import ask
import bed
import cases
import pages
from engine import Engine

PAGES = 16, 64, 1

PROXIED = [
    api.every_endpoint_plain, api.every_endpoint_streamed,
    api.streams_whose_clients_ask_for_no_usage, api.prompts_of_tokens,
    api.salts_separate_prompts, api.salts_that_nginx_sets,
    api.two_answers_to_a_prompt, api.a_list_of_prompts,
    api.clients_that_leave,
    api.an_idle_connection_that_nginx_closes_first,
]


def run_fleet(runner, proxied, paged):
    fleet = [Engine(page) for page in PAGES]
    for engine in fleet:
        engine.start()
    for engine in fleet:
        engine.wait()
    for function in proxied:
        runner.run(function, fleet[:1])
    for function in paged:
        runner.run(function, fleet)
    for engine in fleet:
        engine.stop()


def main(build, scratch, tally):
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(1))
    bed.begin(build, scratch, sys.executable)
    cases.suite = 'sglang'
    runner = cases.Runner(tally, [name for name in os.environ.get(
        'T', '').split(',') if name])
    bed.make_model()
    ask.learn_words(bed.pages)
    own = [f for f in cases.known_cases if f.__module__ == 'pages']
    proxied, paged = runner.wants(*PROXIED), runner.wants(*own)
    try:
        if proxied or paged:
            run_fleet(runner, proxied, paged)
    except Exception:  # an engine that does not start
        runner.give_up('the engines')
    runner.repeat_failures()


main(*sys.argv[1:])
