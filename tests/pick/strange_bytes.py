#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""strange_bytes.py PORT [stuck | silent N | open | idle | drain PID] - frames of HTTP/2 that are changed, cut and mixed.

Sends a whole call of gRPC, and then 1,500 variants of it, each on a connection
of its own: random bytes, frames of random types, lengths and streams, and the
call with a few bytes changed. The seed is fixed.

With "stuck" it sends a response without end, and takes no part of the output:
the stream must be reset. With "silent" N connections send nothing until they
are closed; with "open" it begins a call, and sends nothing more. With "drain" it
ends the process, begins a call after the first GOAWAY, and prints the last
streams of both; with "idle" there is neither.
"""
import os
import random
import select
import signal
import socket
import struct
import sys

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
ROUNDS = 1500


def frame(kind, flags, stream, payload):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + \
        struct.pack('>I', stream) + payload


def literal(name, value):
    return b'\x00' + bytes([len(name)]) + name + bytes([len(value)]) + value


def a_call(stream):
    headers = literal(b':method', b'POST') + literal(b':scheme', b'http') + \
        literal(b':path',
            b'/envoy.service.ext_proc.v3.ExternalProcessor/Process') + \
        literal(b':authority', b'x') + \
        literal(b'content-type', b'application/grpc')
    # request_headers { end_of_stream: true }
    message = b'\x12\x02\x18\x01'
    return frame(1, 4, stream, headers) + frame(0, 1, stream,
        b'\0' + struct.pack('>I', len(message)) + message)


def variant(r):
    way = r.randrange(4)
    call = frame(4, 0, 0, b'') + a_call(1) + a_call(3)
    if way == 0:
        return r.randbytes(r.randrange(200))
    if way == 1:
        return PREFACE + b''.join(frame(r.randrange(12), r.randrange(256),
            r.randrange(8), r.randbytes(r.randrange(60)))
            for _ in range(r.randrange(1, 12)))
    changed = bytearray(call)
    for _ in range(r.randrange(1, 6)):
        changed[r.randrange(len(changed))] = r.randrange(256)
    cut = r.randrange(len(changed)) if way == 3 else len(changed)
    return PREFACE + bytes(changed[:cut])


def send(port, data):
    with socket.create_connection(('127.0.0.1', port), 10) as s:
        s.settimeout(0.02)
        try:
            s.sendall(data)
            return s.recv(65536)
        except OSError:
            return b''


def field(number, payload):
    n = len(payload)
    length = b''
    while n > 127:
        length += bytes([n & 127 | 128])
        n >>= 7
    return bytes([number << 3 | 2]) + length + bytes([n]) + payload


def message(payload):
    return frame(0, 0, 1, b'\0' + struct.pack('>I', len(payload)) + payload)


def an_open_call():
    """A call that does not end, up to its first message."""
    headers = a_call(1)
    headers = headers[:headers.index(b'application/grpc') + 16]
    return PREFACE + frame(4, 0, 0, b'') + headers + message(b'\x12\x02\x18\x01')


def stuck(port):
    """Returns the code of the reset."""
    headers = a_call(1)
    headers = headers[:headers.index(b'application/grpc') + 16]
    begin = message(b'\x12\x02\x18\x01\x5a\x04\x08\x04\x10\x04')
    chunk = message(field(5, field(1, b'x' * 15000)))
    reset = b'\x00\x00\x04\x03\x00\x00\x00\x00\x01'
    got = b''
    with socket.create_connection(('127.0.0.1', port), 10) as s:
        s.sendall(PREFACE + frame(4, 0, 0, b'') + headers + begin +
            message(field(3, b'')))
        for _ in range(2000):
            s.sendall(chunk)
            while select.select([s], [], [], 0.002)[0]:
                more = s.recv(65536)
                got += more
                if reset in got:
                    at = got.index(reset) + len(reset)
                    return struct.unpack('>I', got[at:at + 4])[0]
                if not more:
                    return None
    return None


def connect(port, begin):
    s = socket.create_connection(('127.0.0.1', port), 60)
    s.sendall(begin)
    return s


def drain(port, pid):
    got = b''
    streams = []
    called = False
    with socket.create_connection(('127.0.0.1', port), 10) as s:
        s.settimeout(20)
        s.sendall(PREFACE + frame(4, 0, 0, b''))
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
            while len(got) >= 9 and len(got) >= 9 + int.from_bytes(got[:3], 'big'):
                n = int.from_bytes(got[:3], 'big')
                if pid and got[3] == 4 and got[4] == 1:
                    os.kill(pid, signal.SIGTERM)
                if got[3] == 7:
                    streams.append(struct.unpack('>I', got[9:13])[0])
                    if pid and not called:
                        s.sendall(a_call(1))
                    called = True
                got = got[9 + n:]
    print(*streams)
    return 0


def main():
    port = int(sys.argv[1])
    if sys.argv[2:] == ['stuck']:
        return 0 if stuck(port) == 11 else 1
    if sys.argv[2:3] == ['drain']:
        return drain(port, int(sys.argv[3]))
    if sys.argv[2:] == ['idle']:
        return drain(port, 0)
    if sys.argv[2:3] in (['silent'], ['open']):
        begin = an_open_call() if sys.argv[2] == 'open' else b''
        for s in [connect(port, begin) for _ in range(int(*sys.argv[3:] or [1]))]:
            try:
                while s.recv(4096):
                    pass
            except ConnectionError:
                pass
        return 0
    r = random.Random(20261127)
    for _ in range(ROUNDS):
        send(port, variant(r))
    with socket.create_connection(('127.0.0.1', port), 10) as s:
        s.sendall(PREFACE + frame(4, 0, 0, b'') + a_call(1))
        got = b''
        while b'grpc-status' not in got and len(got) < 4096:
            more = s.recv(4096)
            if not more:
                break
            got += more
            if b'x-gateway-destination-endpoint' in got:
                return 0
    return 1


if __name__ == '__main__':
    sys.exit(main())
