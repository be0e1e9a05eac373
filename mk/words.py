#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""words.py [-v AREA] - counts turns of phrase that make a text hard to read.

Counted are, in comments, pages and documents:

    what     a clause that begins with a bare "what"
    of       "of which", "of these", "of those"
    says     things that say, tell or know
    none     "is none", "are none", "; none"
    heads    sentences that begin with Of, That, Those, Its, What or Then

The sum may be 1.0 per 1,000 words in each area. -v shows the places of one area.
Exits with 1 if an area is above the limit.
"""
import glob
import re
import sys

KINDS = {
    'what': r'\bwhat\b(?! (?:to|if|kind)\b)',
    'of': r'\bof (?:which|these|those)\b',
    'says': r'\b(?:say|says|said|tell|tells|told|knows)\b',
    'none': r'\b(?:is|are) none\b|; none\b',
    'heads': r'(?:^|(?<=[.!?:] ))(?:Of|That|Those|Its|What|Then)\b',
}

LIMIT = 1.0

AREAS = [
    # name, files
    ('README.md', 'README.md'),
    ('ARCHITECTURE.md', 'ARCHITECTURE.md'),
    ('CONTRIBUTING.md', 'CONTRIBUTING.md'),
    ('CHANGELOG.md', 'CHANGELOG.md'),
    ('pages: embedding', 'man/kvroute-embedding.7'),
    ('pages: nginx', 'man/kvroute-nginx*.7'),
    ('pages: library', 'man/*.3'),
    ('pages: concepts', 'man/kvroute.7 man/kvroute-[cfs]*.7 '
        'man/kvroute-envoy.7'),
    ('pages: programs', 'man/*.[18]'),
    ('header', 'include/*.h'),
    ('lib', 'lib/*/*.[ch]'),
    ('ext: daemons', 'ext/daemon/*.[ch] ext/sync/*.[ch] ext/events/*.[ch] '
        'ext/envoy/*.[ch]'),
    ('ext: http, pick', 'ext/http/*/*.[ch] ext/pick/*.[ch]'),
    ('ext: nginx', 'ext/nginx/*.[ch]'),
    ('tools', 'tools/*.[ch] tools/*/*.[ch]'),
    ('tests', 'tests/*.[ch] tests/*/*.[ch] tests/*/*/*.[ch]'),
]


def comment_texts(source):
    """The paragraphs of comments."""
    for comment in re.findall(r'/\*.*?\*/', source, re.S):
        text = re.sub(r'^/\*+|\*+/$', '', comment)
        text = re.sub(r'(?m)^[ \t]*\*', '', text)
        for part in re.split(r'\n[ \t]*\n', text):
            yield ' '.join(part.split())


def page_texts(source):
    literal = False
    words = []
    for line in source.splitlines():
        if re.match(r'\.B[dl] -(literal|column)', line):
            literal = True
        elif re.match(r'\.E[dl]', line):
            literal = False
        elif line.startswith('.\\"') or literal:
            continue
        elif re.match(r'\.(Pp|It|Ss|Sh|Bl|Bd)', line):
            yield ' '.join(words)
            words = []
            if line[1:3] in ('It', 'Ss'):
                yield argument_text(line)
        elif line.startswith('.'):
            words.append(argument_text(line))
        else:
            words.append(line)
    yield ' '.join(words)


def argument_text(line):
    """The arguments of a macro line, names left out."""
    words = line[1:].split()[1:]
    words = [w for w in words if not re.fullmatch(r'[A-Z][a-z]|\\&;', w)]
    text = ' '.join(words)
    return re.sub(r' ([.,;:)])$', r'\1', text)


def document_texts(source):
    source = re.sub(r'(?ms)^```.*?^```', '', source)
    for part in re.split(r'\n\n|\n(?=[-|#])', source):
        if not part.startswith('    '):
            yield ' '.join(part.lstrip('-#| ').split())


def texts(path):
    with open(path, errors='replace') as file:
        source = file.read()
    if path.endswith('.md'):
        return document_texts(source)
    if re.search(r'\.[0-9]$', path):
        return page_texts(source)
    return comment_texts(source)


def count_area(patterns, show):
    words = 0
    counts = dict.fromkeys(KINDS, 0)
    for pattern in patterns.split():
        for path in sorted(glob.glob(pattern)):
            for text in texts(path):
                words += len(re.findall(r"[A-Za-z']+", text))
                for kind, regex in KINDS.items():
                    flags = 0 if kind == 'heads' else re.I
                    for hit in re.finditer(regex, text, flags):
                        counts[kind] += 1
                        if show:
                            at = hit.start()
                            print('%s: %s: %s' % (path, kind,
                                text[max(0, at - 30):at + 50]))
    return words, counts


def main():
    wanted = sys.argv[2] if sys.argv[1:2] == ['-v'] else None
    bad = False
    for name, patterns in AREAS:
        if wanted not in (None, name):
            continue
        words, counts = count_area(patterns, wanted is not None)
        if words == 0:
            continue
        figures = {k: 1000 * n / words for k, n in counts.items()}
        total = sum(figures.values())
        above = round(total, 1) > LIMIT
        bad = bad or above
        print('%-17s %6d words: %5.1f of %4.1f%s%s' % (name, words, total,
            LIMIT, ''.join('  %s %.1f' % f for f in figures.items()),
            '  TOO MANY' if above else ''))
    return 1 if bad else 0


sys.exit(main())
