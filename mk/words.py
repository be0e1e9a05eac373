#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""words.py [-v AREA] - counts turns of phrase that make a text hard to read.

Counted are, in comments, pages and documents:

    what     a clause that begins with a bare "what"
    of       "of which", "of these", "of those"
    says     things that say, tell or know
    none     "is none", "are none", "; none"
    heads    sentences that begin with Of, That, Those, Its, What or Then

Each area has a limit for the sum, per 1,000 words. It is 1.0, or in areas that
have not reached this yet their present figure, which may only fall. -v shows the
places of one area. Exits with 1 if an area is above its limit.
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

AREAS = [
    # name, files, limit
    ('README.md', 'README.md', 1.0),
    ('ARCHITECTURE.md', 'ARCHITECTURE.md', 1.0),
    ('CONTRIBUTING.md', 'CONTRIBUTING.md', 1.0),
    ('CHANGELOG.md', 'CHANGELOG.md', 1.0),
    ('pages: embedding', 'man/kvroute-embedding.7', 1.0),
    ('pages: nginx', 'man/kvroute-nginx*.7', 1.0),
    ('pages: library', 'man/*.3', 1.0),
    ('pages: concepts', 'man/kvroute.7 man/kvroute-[cfs]*.7 '
        'man/kvroute-envoy.7', 1.0),
    ('pages: programs', 'man/*.[18]', 1.0),
    ('header', 'include/*.h', 1.0),
    ('lib', 'lib/*/*.[ch]', 1.0),
    ('ext: daemons', 'ext/daemon/*.[ch] ext/sync/*.[ch] ext/events/*.[ch] '
        'ext/envoy/*.[ch]', 1.0),
    ('ext: http, pick', 'ext/http/[!fp]*/*.[ch] ext/pick/*.[ch]', 1.0),
    ('ext: the rest', 'ext/http/[fp]*/*.[ch] ext/nginx/*.[ch]', 14.6),
    ('tools', 'tools/*.[ch] tools/*/*.[ch]', 1.0),
    ('tests', 'tests/*.[ch] tests/*/*.[ch] tests/*/*/*.[ch]', 1.0),
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
    for name, patterns, limit in AREAS:
        if wanted not in (None, name):
            continue
        words, counts = count_area(patterns, wanted is not None)
        if words == 0:
            continue
        figures = {k: 1000 * n / words for k, n in counts.items()}
        total = sum(figures.values())
        above = round(total, 1) > limit
        bad = bad or above
        print('%-17s %6d words: %5.1f of %4.1f%s%s' % (name, words, total,
            limit, ''.join('  %s %.1f' % f for f in figures.items()),
            '  TOO MANY' if above else ''))
    return 1 if bad else 0


sys.exit(main())
