# SPDX-License-Identifier: BSD-2-Clause
"""run.py BUILD SCRATCH TALLY - the cases of this folder, or those that $T names,
with as many engines as they need. vllm.sh begins it."""
import os
import signal
import sys

import api
import ask
import bed
import cases
import exact
import faults
import guess
import ranks

FLEET, RANKED = [], []
for module, those in ((api, FLEET), (exact, FLEET), (guess, FLEET),
                      (faults, FLEET), (ranks, RANKED)):
    those += [function for function in cases.known_cases
              if function.__module__ == module.__name__]


def run_fleet(runner, functions):
    fleet = [bed.Engine() for _ in range(3)]
    for engine in fleet:
        engine.start()
    for engine in fleet:
        engine.wait()
    for function in functions:
        runner.run(function, fleet)
    for engine in fleet:
        engine.stop()


def run_ranked(runner, functions):
    with bed.Engine(blocks=160, ranks=2) as engine:
        for function in functions:
            runner.run(function, engine)


def main(build, scratch, tally):
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(1))
    bed.begin(build, scratch, sys.executable)
    wanted = [name for name in os.environ.get('T', '').split(',') if name]
    runner = cases.Runner(tally, wanted)
    bed.make_model()
    ask.learn_words(bed.pages)
    for run, all_of_them in ((run_fleet, FLEET), (run_ranked, RANKED)):
        functions = runner.wants(*all_of_them)
        try:
            if functions:
                run(runner, functions)
        except Exception:  # an engine that does not start
            runner.give_up(run.__name__)
    runner.repeat_failures()


main(*sys.argv[1:])
