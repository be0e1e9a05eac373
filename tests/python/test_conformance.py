# SPDX-License-Identifier: BSD-2-Clause
"""tests/http/conformance.jsonl by the package: tests/http/conformance.md has
its members."""
import json
import os
import unittest

import bed
import kvroute
from kvroute import _library

NAMES = ['a:1', 'b:1']


def pieces_of(response):
    if 'hex' in response:
        return [bytes.fromhex(p) for p in response['hex']]
    return [p.encode() for p in response['pieces']]


class Conformance(unittest.TestCase):
    def call(self, pool, want, picked):
        expect, body = want['expect'], want.get('body', '').encode()
        call = pool.call(want['path'], want.get('method', 'POST'))
        tell = want.get('tell', {})
        call.tell(**{k: k == 'bypass' or v for k, v in tell.items()})
        call.headers([tuple(h) for h in want.get('headers', ())])
        call.body(body).body_end(not want.get('cut'))
        try:
            targets = call.pick(fallbacks=True)
            for word in want.get('fails', ()):
                call.failed(kvroute.Failure[word.upper()])
                targets = call.pick(fallbacks=True)
        except kvroute.Unavailable as error:
            self.assertEqual(error.code, getattr(
                _library.lib, 'KVH_' + want.get('error', '')))
            call.end()
            return
        self.assertNotIn('error', want)
        picked.append(targets[0])
        tries = len(want.get('fails', ())) + 1
        facts = {'endpoint': call.endpoint, 'reason': call.reason,
                 'model': call.model, 'stream': int(call.stream),
                 'targets': len(targets) + tries - 1}
        if 'overlap' in expect:
            facts['overlap'] = int(call.overlap_tokens > 0)
        if 'target' in expect:
            facts['target'] = targets[0]
        if 'same' in expect:
            facts['same'] = picked.index(targets[0])
        self.assertEqual(facts, expect)
        self.assertEqual(call.tries, tries)
        sent = call.edited(body)
        if 'salt' in want:
            self.assertEqual(json.loads(sent)['cache_salt'], want['salt'])
        else:
            self.assertEqual(sent, want.get('sent', body.decode()).encode())
        headers = call.edited_headers()
        self.assertEqual(headers, {n: headers.get(n, v) if v == '?' else v
                                   for n, v in want['set'].items()})
        response = want['response']
        rewrites = call.response(response['status'], response['type'],
                                 response.get('coding', ''))
        self.assertEqual(rewrites, bool(want.get('rewrites')))
        passed = b''.join(call.data(p) for p in pieces_of(response))
        passed += call.end(kvroute.How[want.get('end', 'whole').upper()])
        self.assertEqual(passed, want['passed'].encode() if 'passed' in want
                         else b''.join(pieces_of(response)))
        self.assertEqual(list(call.usage) if call.usage else None,
                         want['report'])
        if 'started' in want:
            self.assertEqual(int(call.started), want['started'])

    def test_conformance(self):
        rows = 0
        with open(os.path.join(bed.root, 'tests/http/conformance.jsonl')) as f:
            for line in f:
                row = json.loads(line)
                with self.subTest(row['name']):
                    pool = kvroute.Pool(
                        row.get('servers', NAMES), **dict(
                            o.split('=') for o in
                            row.get('options', '').split()))
                    picked = []
                    for want in row['calls']:
                        self.call(pool, want, picked)
                    self.assertEqual(bed.leases(pool), 0)
                rows += 1
        self.assertGreaterEqual(rows, 40)
