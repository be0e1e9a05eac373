#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""nats_creds.py FOLDER - writes server.conf and user.creds for a server of NATS
with an operator, an account and a user, whose keys openssl makes."""
import base64
import json
import subprocess
import sys

OPERATOR, ACCOUNT, USER, SEED = 14 << 3, 0, 20 << 3, 18 << 3


def openssl(*args, data=None):
    return subprocess.run(('openssl',) + args, input=data, check=True,
                          stdout=subprocess.PIPE).stdout


def encode(raw):
    """Base32 with the CRC of XMODEM, as nkeys have it."""
    crc = 0
    for byte in raw:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
        crc &= 0xffff
    raw += crc.to_bytes(2, 'little')
    return base64.b32encode(raw).decode().rstrip('=')


def flat(data):
    return base64.urlsafe_b64encode(data).decode().rstrip('=')


class Key:
    def __init__(self, kind):
        self.path = '%s/key-%d.pem' % (folder, kind)
        openssl('genpkey', '-algorithm', 'ed25519', '-out', self.path)
        secret = openssl('pkey', '-in', self.path, '-outform', 'DER')[-32:]
        public = openssl('pkey', '-in', self.path, '-pubout', '-outform',
                         'DER')[-32:]
        self.name = encode(bytes([kind]) + public)
        self.seed = encode(bytes([SEED | kind >> 5, (kind & 31) << 3]) + secret)

    def sign(self, subject, name, claims):
        """A JWT about the subject."""
        head = {'typ': 'JWT', 'alg': 'ed25519-nkey'}
        body = {'jti': name, 'iat': 1700000000, 'iss': self.name, 'name': name,
                'sub': subject.name, 'nats': dict(claims, version=2)}
        text = '.'.join(flat(json.dumps(part).encode())
                        for part in (head, body))
        with open(folder + '/to-sign', 'w') as out:
            out.write(text)
        return text + '.' + flat(openssl(
            'pkeyutl', '-sign', '-rawin', '-inkey', self.path, '-in',
            folder + '/to-sign'))


folder = sys.argv[1]
operator, account, user = Key(OPERATOR), Key(ACCOUNT), Key(USER)
limits = dict.fromkeys(('subs', 'conn', 'leaf', 'imports', 'exports', 'data',
                        'payload'), -1)
limits['wildcards'] = True
with open(folder + '/server.conf', 'w') as out:
    out.write('operator: %s\nresolver: MEMORY\nresolver_preload: { %s: %s }\n' % (
        operator.sign(operator, 'operator', {'type': 'operator'}), account.name,
        operator.sign(account, 'account', {'type': 'account',
                                           'limits': limits})))
with open(folder + '/user.creds', 'w') as out:
    out.write('-----BEGIN NATS USER JWT-----\n%s\n------END NATS USER JWT------\n'
              '\n-----BEGIN USER NKEY SEED-----\n%s\n'
              '------END USER NKEY SEED------\n' % (
                  account.sign(user, 'user', {
                      'type': 'user', 'pub': {}, 'sub': {}, 'subs': -1,
                      'data': -1, 'payload': -1}), user.seed))
