# SPDX-License-Identifier: BSD-2-Clause
"""rivals.py BUILD - kvroute and other gateways, each in front of the same
stand-in engines, with the same users.

From the environment: ROUNDS (3); SECONDS, the most that a run takes; LOAD and
RIVAL, names with commas between them; INTO, a folder for the results (that of
the build). Each run is a line of results.jsonl, and all lines there are make
the page: remove it for a new one.
"""
import datetime
import fcntl
import json
import os
import shutil
import signal
import sys

import gateways
import measure
import page
from install import Absent


class Bench:
    def __init__(self, build, environment):
        self.folder = os.path.join(os.path.abspath(build), 'bench-rivals')
        self.work = os.path.join(self.folder, 'work')
        os.makedirs(self.folder, exist_ok=True)
        self.alone = open(os.path.join(self.folder, 'lock'), 'w')
        fcntl.flock(self.alone, fcntl.LOCK_EX)  # two would share processors
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)
        self.place = measure.Place(build, self.work)
        self.results = os.path.join(self.folder, 'results.jsonl')
        self.rounds = int(environment.get('ROUNDS') or 3)
        self.seconds = int(environment.get('SECONDS') or 0)
        self.loads = names(environment.get('LOAD'), page.ALL)
        self.rivals = [gateways.BY_NAME[name] for name in names(
            environment.get('RIVAL'), gateways.BY_NAME)]
        self.named = bool(environment.get('RIVAL'))
        self.absent = {}

    def order(self, turn):
        """In each round another begins, and every second one is reversed."""
        at = (turn - 1) % len(self.rivals)
        order = self.rivals[at:] + self.rivals[:at]
        return order if turn % 2 else order[::-1]

    def keeps_up(self, rival):
        """Or is asked for by its name."""
        return self.named or rival.program != gateways.SLOW_PROGRAM

    def fits(self, load, rival):
        return (load.sessions or not rival.session) and (
            load.slow or self.keeps_up(rival))

    def tasks(self):
        for turn in range(1, self.rounds + 1):
            for load in self.loads:
                if load in measure.LOADS:
                    yield from ((turn, measure.run_load, 'load', load, rival)
                                for rival in self.order(turn)
                                if self.fits(measure.LOADS[load], rival))
        for rival in self.rivals:
            if 'saturation' in self.loads and not rival.session:
                yield (1, measure.run_saturation, 'saturation', 'saturation',
                       rival)
        for name in measure.FAULTS:
            if 'faults' in self.loads:
                yield from ((1, measure.run_fault, 'fault', name, rival)
                            for rival in self.rivals if not rival.session and
                            self.keeps_up(rival))

    def run(self):
        for turn, function, kind, name, rival in self.tasks():
            if rival.name in self.absent:
                continue
            facts = {'kind': kind, 'name': name, 'round': turn,
                     'rival': rival.name, 'seconds_at_most': self.seconds,
                     'date': datetime.date.today().isoformat()}
            try:
                facts['facts'] = function(self.place, rival, name, turn,
                                          self.seconds)
                facts['version'] = gateways.version(self.place.build, rival)
            except Absent as reason:
                self.absent[rival.name] = str(reason)
                facts['absent'] = str(reason)
                print('%s is left out: %s' % (rival.name, reason), flush=True)
            except RuntimeError as error:
                print('%s, %s: %s' % (name, rival.name, error), flush=True)
                continue
            self.record(facts)

    def record(self, facts):
        with open(self.results, 'a') as file:
            file.write(json.dumps(facts) + '\n')
        if 'facts' in facts:
            print(page.line(facts), flush=True)


def names(text, known):
    wanted = [name for name in (text or '').split(',') if name]
    for name in wanted:
        if name not in known:
            sys.exit('there is no %s; there are %s' % (name,
                                                       ', '.join(known)))
    return wanted or list(known)


def main(build):
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(1))
    bench = Bench(build, os.environ)
    bench.run()
    folder = os.environ.get('INTO') or bench.folder
    page.write(bench.results, folder)
    print('results: %s/RIVALS.md, %s/rivals.svg' % (folder, folder))


if __name__ == '__main__':
    main(*sys.argv[1:])
