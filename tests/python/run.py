# SPDX-License-Identifier: BSD-2-Clause
"""run.py BUILD FOLDER SCRATCH - runs the tests of a folder, or those that $T
names, and counts them. An exception that Python cannot raise, such as one in
__del__, is a failure of the test during which it comes."""
import gc
import os
import sys
import traceback
import unittest

import bed


class Result(unittest.TestResult):
    broken = set()
    unraised = []

    def addSuccess(self, test):
        gc.collect()
        if self.unraised:
            count(0, 1, 0)
            self.print_text(test, ', unraised', ''.join(self.unraised))
            self.unraised.clear()
        elif test not in self.broken:
            count(1, 0, 0)

    def addSubTest(self, test, part, error):
        if error is None:
            return
        if test not in self.broken:
            self.broken.add(test)
            count(0, 1, 0)
        self.print_failure(test, error, f', {part.params or part._message}')

    def addSkip(self, test, reason):
        count(0, 0, 1)
        print(f'    SKIPPED  {bed.suite}, {name_of(test)}: {reason}')

    def addFailure(self, test, error):
        count(0, 1, 0)
        self.print_failure(test, error, '')

    addError = addFailure

    def print_failure(self, test, error, part):
        self.print_text(test, part, self._exc_info_to_string(error, test))

    def print_text(self, test, part, text):
        print(f'    FAILED   {bed.suite}, {name_of(test)}{part}: '
              f'make check-{bed.suite} T={name_of(test)}')
        print(''.join(f'             {line}\n'
                      for line in text.splitlines()[-40:]), end='', flush=True)


def note_unraised(unraised):
    """Keeps the text alone: the object may be on its way out."""
    Result.unraised += traceback.format_exception(
        unraised.exc_type, unraised.exc_value, unraised.exc_traceback)


def count(*numbers):
    with open(os.path.join(bed.scratch, 'tally'), 'a') as tally:
        print(*numbers, file=tally)


def name_of(test):
    return test.id().split('.')[-1].replace('test_', '', 1)


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


found = list(tests_of(unittest.defaultTestLoader.discover(bed.folder)))
wanted = [name for name in os.environ.get('T', '').split(',') if name]
for name in wanted:
    if name not in map(name_of, found):
        sys.exit(f'    FAILED   {bed.suite}: there is no case {name}')
chosen = [t for t in found if not wanted or name_of(t) in wanted]
sys.unraisablehook = note_unraised
unittest.TestSuite(chosen).run(Result())
print(f'  {bed.suite:14} {len(chosen):4} tests')
sys.exit(''.join(Result.unraised) or None)
