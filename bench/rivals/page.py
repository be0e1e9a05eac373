# SPDX-License-Identifier: BSD-2-Clause
"""page.py RESULTS FOLDER - the page and the chart of results.jsonl: RIVALS.md
and rivals.svg. Of each run the last line counts."""
import html
import json
import os
import platform
import subprocess
import sys

import gateways
import measure

ALL = [*measure.LOADS, 'saturation', 'faults']
FAULT_TITLES = {'kill': 'kill -9', '500': '500', '503': '503', '429': '429',
                'hang': 'hangs'}
# Columns of a load: title, fact, factor, digits.
COLUMNS = [
    ('hits %', 'hit_ratio', 100, 1), ('TTFT mean', 'first_mean_ms', 1, 1),
    ('p90', 'first_p90_ms', 1, 1), ('p99', 'first_p99_ms', 1, 1),
    ('whole', 'whole_mean_ms', 1, 1), ('req/s', 'rate', 1, 1),
    ('gateway CPU us', 'cpu_us', 1, 0), ('MB', 'memory_mb', 1, 0),
    ('failed', 'errors', 1, 0)]


class Results:
    def __init__(self, path):
        self.lines = {}
        with open(path) as file:
            for line in file:
                one = json.loads(line)
                key = (one['kind'], one['name'], one['rival'], one['round'])
                self.lines[key] = one

    def having(self, what):
        return [one for one in self.lines.values() if what in one]

    def facts(self, kind, name, rival):
        """Of all rounds."""
        return [one['facts'] for one in self.having('facts')
                if (one['kind'], one['name'], one['rival']) == (
                    kind, name, rival)]

    def rivals(self, kind, name=None):
        """In the order of gateways.py."""
        seen = {one['rival'] for one in self.having('facts')
                if one['kind'] == kind and name in (None, one['name'])}
        return [rival for rival in gateways.RIVALS if rival.name in seen]

    def absent(self):
        there = {one['rival'] for one in self.having('facts')}
        return {one['rival']: one['absent'] for one in self.having('absent')
                if one['rival'] not in there}

    def version(self, rival):
        return next((one['version'] for one in reversed(
            list(self.lines.values())) if one['rival'] == rival and
            'version' in one), '')


# ------------------------------------------------------------------- tables

def spread(values, factor=1, digits=1):
    """The mean and, of several, the range."""
    values = [value * factor for value in values
              if isinstance(value, (int, float))]
    if not values:
        return '-'
    text = '%.*f' % (digits, sum(values) / len(values))
    if len(values) > 1:
        text += ' (%.*f to %.*f)' % (digits, min(values), digits, max(values))
    return text


def table(heads, rows):
    lines = ['| ' + ' | '.join(heads) + ' |', '|' + '---|' * len(heads)]
    lines += ['| ' + ' | '.join(map(str, row)) + ' |' for row in rows]
    return '\n'.join(lines) + '\n'


def load_table(results, name):
    rows = []
    for rival in results.rivals('load', name):
        facts = results.facts('load', name, rival.name)
        rows.append([rival.name] + [
            spread([one.get(fact, '') for one in facts], factor, digits)
            for _, fact, factor, digits in COLUMNS])
    return table(['gateway'] + [column[0] for column in COLUMNS], rows)


def shares(results, name):
    """Processor time of users and engines: neither may be the bottleneck."""
    users, engines = [], []
    for rival in results.rivals('load', name):
        for facts in results.facts('load', name, rival.name):
            users.append(facts['client_share'])
            engines.append(facts['engines_share'])
    return 'Processors taken: users %s, engines %s, of %d.' % (
        spread(users, 1, 2), spread(engines, 1, 2), os.cpu_count())


def load_parts(results):
    for name, load in measure.LOADS.items():
        if results.rivals('load', name):
            yield '### %s: %s\n' % (name.capitalize(), load.text)
            yield '    kvroute-engine %s    # %d of them\n    kvroute-chats ' \
                '%s\n' % (load.facts, load.engines, load.users)
            yield load_table(results, name)
            yield shares(results, name) + '\n'


def saturation_table(results):
    kinds = ['%d %s' % (kb, how) for kb in measure.BODIES
             for how in ('old', 'new')]
    rows = []
    for rival in results.rivals('saturation'):
        facts = results.facts('saturation', 'saturation', rival.name)[-1]
        row = [rival.name]
        for kind in kinds:
            one = facts.get(kind)
            row.append('-' if not one else '%.0f; %.0f; %.2f; %.2f%s' % (
                one['cpu_us'], one['rate'], one['busy'], one['client_share'],
                '; %d failed' % one['errors'] if one['errors'] else ''))
        rows.append(row)
    return table(['gateway'] + ['%s kB, %s' % (
        kind.split()[0], 'all new' if 'new' in kind else 'end new')
        for kind in kinds], rows)


def fault_cell(facts):
    if not facts:
        return '-'
    one = facts[-1]
    text = '%d/%d; %s' % (one['errors'], one['requests'],
                          spread([one.get('first_p99_ms', '')], 1, 0))
    if one['back_s'] is not None:
        text += '; %.1f s' % one['back_s']
    return text


def fault_table(results):
    return table(['gateway', *FAULT_TITLES.values()], [
        [rival.name] + [fault_cell(results.facts('fault', name, rival.name))
                        for name in FAULT_TITLES]
        for rival in results.rivals('fault')])


def settings_table(results):
    rows = []
    for rival in gateways.RIVALS:
        version = results.version(rival.name)
        if version:
            rows.append([rival.name, '%s %s' % (rival.program, version),
                         '`%s`' % gateways.shown_settings(rival),
                         rival.source])
    return table(['name', 'program', 'settings', 'from'], rows)


def commit():
    found = subprocess.run(['git', 'rev-parse', '--short', 'HEAD'],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           text=True)
    return found.stdout.strip() or 'no commit'


# --------------------------------------------------------------------- page

HEAD = '''# Beside other gateways

    make bench-rivals INTO=bench    # %s, %s; Linux %s, %s

Written by bench/rivals/page.py. The same stand-in engines (kvroute-engine(1))
and the same users (kvroute-chats(1)) behind each gateway; in each round the
gateways take turns in another order. Milliseconds; means over the rounds, with
their range. Compare only figures of one table: all programs share the %d
processors of one machine.

%s
'''
SATURATION = '''## Saturation

The gateway has one processor; its users, 16 at a time, and engines that answer
at once have the others. CPU us of a request; requests a second; processors that
the gateway took; processors that the users took. Where the gateway took less
than one it was not the bottleneck, and its rate is not its limit. vLLM's router
gets no tokens from these engines, so it does not look at prefixes here.
'''
FAULTS = '''## Faults

One of four engines fails for 10 of 26 seconds. Requests failed / sent; p99 of
TTFT; seconds after its end until that engine has half of its share again.
'''
DYNAMO = '''Dynamo's CPU is that of its frontend, which tokenizes, without its
workers, which are Python here. Its tokenizer makes %.2f tokens of one of the
stand-in's: its engines are as much larger and faster.
'''


def left_out(results):
    absent = results.absent()
    return '' if not absent else 'Left out:\n\n' + ''.join(
        '- %s: %s\n' % (name, ' '.join(reason.split()))
        for name, reason in absent.items()) + '\n'


def short_runs(results):
    limits = sorted({one['seconds_at_most'] for one in results.having('facts')}
                    - {0})
    return '' if not limits else (
        'Some runs were cut at %s seconds: their figures are a trial.\n\n' %
        ' and '.join(map(str, limits)))


def page_text(results):
    dates = sorted({one['date'] for one in results.having('facts')})
    text = HEAD % (' to '.join(dict.fromkeys((dates[0], dates[-1]))),
                   commit(), platform.release(), platform.machine(),
                   os.cpu_count(),
                   settings_table(results))
    text += left_out(results) + short_runs(results)
    if any(rival.program == 'dynamo' for rival in results.rivals('load')):
        text += DYNAMO % measure.DYNAMO_TOKENS + '\n'
    if results.rivals('load'):
        text += '## Loads\n\n![TTFT and hits](rivals.svg)\n\n'
        text += '\n'.join(load_parts(results)) + '\n'
    if results.rivals('saturation'):
        text += SATURATION + '\n' + saturation_table(results) + '\n'
    if results.rivals('fault'):
        text += FAULTS + '\n' + fault_table(results)
    return text.rstrip('\n') + '\n'


def line(run):
    """One run, for the terminal."""
    facts = run['facts']
    if run['kind'] == 'saturation':
        text = ', '.join('%s kB %.0f us %.0f/s' % (
            kind, one['cpu_us'], one['rate']) for kind, one in facts.items())
    elif run['kind'] == 'fault':
        text = fault_cell([facts])
    else:
        text = ', '.join('%s %s' % (title, spread(
            [facts.get(fact, '')], factor, digits))
            for title, fact, factor, digits in COLUMNS)
    return '%-10s %d %-15s %s' % (run['name'], run['round'], run['rival'],
                                  text)


# -------------------------------------------------------------------- chart

UNITS = {'first_mean_ms': ', ms'}
ROW, LEFT, WIDTH, BAR = 20, 118, 330, 12
STYLE = '''<style>
text { font: 12px sans-serif; fill: #24292f; }
.title { font-weight: bold; }
.bar { fill: #8c959f; } .ours { fill: #0969da; } .range { stroke: #24292f; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .bar { fill: #6e7681; } .ours { fill: #4493f8; }
.range { stroke: #e6edf3; }
}
</style>
'''


def bars(results, name, column, x, y):
    """A panel: one fact of one load, a bar for each gateway."""
    title, fact, factor, digits = column
    rows = []
    for rival in results.rivals('load', name):
        values = [facts[fact] * factor for facts in results.facts(
            'load', name, rival.name)
            if isinstance(facts.get(fact), (int, float))]
        if values:
            rows.append((rival.name, values))
    most = max([max(values) for _, values in rows], default=1) or 1
    scale = (WIDTH - LEFT - 60) / most
    yield '<text class="title" x="%d" y="%d">%s: %s</text>' % (
        x + LEFT, y, name, html.escape(title + UNITS.get(fact, '')))
    for i, (rival, values) in enumerate(rows):
        yield from bar(rival, values, digits, x, y + 8 + i * ROW, scale)


def bar(rival, values, digits, x, y, scale):
    mean = sum(values) / len(values)
    middle, left = y + BAR / 2, x + LEFT
    yield '<text x="%d" y="%.1f" text-anchor="end">%s</text>' % (
        left - 6, middle + 4, html.escape(rival))
    yield '<rect class="%s" x="%d" y="%.1f" width="%.1f" height="%d"/>' % (
        'ours' if rival.startswith('kvroute') else 'bar', left, y,
        mean * scale, BAR)
    if len(values) > 1:
        yield '<line class="range" x1="%.1f" x2="%.1f" y1="%.1f" ' \
            'y2="%.1f"/>' % (left + min(values) * scale,
                             left + max(values) * scale, middle, middle)
    yield '<text x="%.1f" y="%.1f">%.*f</text>' % (
        left + max(values) * scale + 5, middle + 4, digits, mean)


def chart(results):
    """TTFT, hits and CPU of each load, a row of panels for each."""
    shown = [COLUMNS[1], COLUMNS[0], COLUMNS[6]]
    parts, y = [], 20
    for name in measure.LOADS:
        rows = len(results.rivals('load', name))
        if rows:
            for i, column in enumerate(shown):
                parts += bars(results, name, column, i * WIDTH, y)
            y += rows * ROW + 40
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
            'viewBox="0 0 %d %d" role="img">\n'
            '<title>kvroute beside other gateways</title>\n%s%s\n</svg>\n' % (
                3 * WIDTH, y, 3 * WIDTH, y, STYLE, '\n'.join(parts)))


def write(path, folder):
    if not os.path.exists(path):
        sys.exit('there are no results')
    results = Results(path)
    if not results.having('facts'):
        sys.exit('no gateway was measured')
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'RIVALS.md'), 'w') as file:
        file.write(page_text(results))
    with open(os.path.join(folder, 'rivals.svg'), 'w') as file:
        file.write(chart(results))


if __name__ == '__main__':
    write(*sys.argv[1:])
