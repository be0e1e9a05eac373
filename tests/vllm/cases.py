# SPDX-License-Identifier: BSD-2-Clause
"""cases.py - cases, their results and the tally.

A case is a function of engines that run: it returns a sentence to print, or
nothing, and raises an exception if it fails. A case with a number in `known` is
expected to miss a demand for the reason given: if it does, it is printed with
both and counts as skipped; if it does not, it fails, so that the mark goes.
"""
import os
import subprocess
import time
import traceback

import bed

known_cases = {}
suite = 'vllm'


class Missed(AssertionError):
    """A demand that a known fault may miss."""


def demand(holds, text):
    if not holds:
        raise Missed(text)


def case(function=None, known=0, reason=''):
    if function is None:
        return lambda f: case(f, known, reason)
    known_cases[function] = known, reason
    return function


def output(program, *arguments):
    """What a program of the build folder prints."""
    return subprocess.run([os.path.join(bed.build, program), *arguments],
                          check=True, timeout=60, text=True,
                          stdout=subprocess.PIPE).stdout


class Runner:
    def __init__(self, tally, wanted):
        self.tally, self.wanted = tally, wanted
        self.failures = []

    def wants(self, *functions):
        return [f for f in functions
                if not self.wanted or f.__name__ in self.wanted]

    def count(self, passed, failed, skipped):
        with open(self.tally, 'a') as file:
            file.write('%d %d %d\n' % (passed, failed, skipped))

    def run(self, function, *engines):
        name = function.__name__.replace('_', ' ')
        known, reason = known_cases[function]
        begun = time.monotonic()
        try:
            said = function(*engines)
            assert not known, 'known fault %d is not seen: %s' % (known, said)
        except Exception as error:  # of any kind: the case has failed
            self.failed(function, name, known, reason, error)
            return
        self.count(1, 0, 0)
        print('  %-14s %s%s (%.0f s)' % (
            suite, name, ': ' + said if said else '',
            time.monotonic() - begun), flush=True)

    def failed(self, function, name, known, reason, error):
        if known and isinstance(error, Missed):
            self.count(0, 0, 1)
            print('  %-14s known fault %d: %s: %s: %s' % (
                suite, known, name, error, reason), flush=True)
            return
        self.failures.append(function.__name__)
        self.give_up(name)

    def give_up(self, name):
        """With the exception that is handled now."""
        self.count(0, 1, 0)
        print('    FAILED   %s: %s: %s' % (suite, name,
                                           traceback.format_exc()), flush=True)
        for process in bed.running:
            print('             %s: %s' % (process.name,
                                           process.last_lines(3)), flush=True)

    def repeat_failures(self):
        for name in self.failures:
            print('FAILED  %s: %s -- make check-%s T=%s' % (
                suite, name, suite, name))
