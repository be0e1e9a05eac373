#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""picker_check.py [options] TARGET SERVER ... - checks an endpoint picker.

Asks any picker of the Gateway API Inference Extension (endpoint picker protocol
1.0.0) what a data plane would ask it, over ext_proc v3, and prints a line for
each check. Exits with 1 if one fails. TARGET is HOST:PORT of the picker; the
SERVERs, ADDRESS:PORT, are all that it chooses from, at least three.

    --tls          the picker serves over TLS; its certificate is not checked
    --health PORT  of another port that answers health checks, without TLS
    --places N     each server takes N requests at a time: then comes 429
    --prefill S    a further server, which prefills for the others; several
    --generated D  where to keep what protoc makes of ext_proc.proto and
                   health.proto (default: a temporary folder)
    --only WORD    checks whose name has the word

It needs the packages of requirements.txt.
"""
import argparse
import contextlib
import importlib
import json
import os
import queue
import shutil
import ssl
import sys
import tempfile
import threading
import time

import grpc

HERE = os.path.dirname(os.path.abspath(__file__))
DESTINATION = 'x-gateway-destination-endpoint'
SUBSET = 'x-gateway-destination-endpoint-subset'
PREFILL = 'x-prefiller-host-port'
SERVED = 'x-gateway-destination-endpoint-served'
NONE, STREAMED, BUFFERED, PARTIAL, DUPLEX = range(5)
PATIENCE = 10
# Statuses of a stream whose message is malformed.
BAD_MESSAGE = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN)
PROMPT = 'some words ' * 300

pb = pb_grpc = hpb = hpb_grpc = None


def compile_messages(messages):
    """Several checkers may do so at a time: the first one's are kept."""
    from grpc_tools import protoc
    include = os.path.join(os.path.dirname(protoc.__file__), '_proto')
    made = tempfile.mkdtemp(dir=os.path.dirname(messages))
    for name in 'ext_proc', 'health':
        if protoc.main(['', '-I' + HERE, '-I' + include,
                '--python_out=' + made, '--grpc_python_out=' + made,
                name + '.proto']) != 0:
            sys.exit('protoc has failed')
    try:
        os.rename(made, messages)
    except OSError:
        shutil.rmtree(made)


def generate(folder):
    global pb, pb_grpc, hpb, hpb_grpc
    messages = os.path.join(os.path.abspath(folder), 'messages')
    if not os.path.isdir(messages):
        compile_messages(messages)
    sys.path.insert(0, messages)
    pb = importlib.import_module('ext_proc_pb2')
    pb_grpc = importlib.import_module('ext_proc_pb2_grpc')
    hpb = importlib.import_module('health_pb2')
    hpb_grpc = importlib.import_module('health_pb2_grpc')


class Call:
    """One stream of ext_proc."""

    def __init__(self, stub):
        self.queue = queue.Queue()
        self.call = stub.Process(iter(self.queue.get, None))
        self.replies = queue.Queue()
        self.code = None
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for reply in self.call:
                self.replies.put(reply)
        except grpc.RpcError as error:
            self.code = error.code()
        else:
            self.code = grpc.StatusCode.OK
        self.replies.put(None)

    def send(self, **parts):
        self.queue.put(pb.ProcessingRequest(**parts))

    def reply(self, patience=PATIENCE):
        """The next reply, or None at the end of the stream."""
        try:
            return self.replies.get(timeout=patience)
        except queue.Empty:
            raise AssertionError('no reply in time') from None

    def silent(self, seconds=0.3):
        try:
            reply = self.replies.get(timeout=seconds)
        except queue.Empty:
            return True
        raise AssertionError('an early reply: %r' % reply)

    def finish(self):
        """Ends the half of the client; waits for the end of the other."""
        self.queue.put(None)
        while self.reply() is not None:
            pass
        return self.code

    def cancel(self):
        self.call.cancel()
        self.queue.put(None)


def header_map(headers):
    return pb.HeaderMap(headers=[pb.HeaderValue(key=k, raw_value=v.encode())
        for k, v in headers])


def request_headers(path='/v1/chat/completions', end=False, more=()):
    return pb.HttpHeaders(headers=header_map([(':method', 'POST'),
        (':path', path), (':authority', 'llm'),
        ('content-type', 'application/json')] + list(more)),
        end_of_stream=end)


def modes(request, response):
    return pb.ProtocolConfiguration(request_body_mode=request,
        response_body_mode=response)


def metadata(space, key, value):
    m = pb.Metadata()
    m.filter_metadata[space].update({key: value})
    return m


def chat(prompt=PROMPT, **more):
    return json.dumps(dict({'model': 'm', 'messages': [
        {'role': 'user', 'content': prompt}]}, **more)).encode()


class Choice:
    """What a picker has answered to a request."""

    def __init__(self):
        self.status = 0        # of an ImmediateResponse
        self.refusal = None
        self.header = self.metadata = None
        self.set = {}
        self.removed = []
        self.pieces = []       # of a body that is streamed
        self.end = False
        self.body = None       # in place of one that is buffered
        self.order = []        # kinds of replies

    def take(self, reply):
        kind = reply.WhichOneof('response')
        self.order.append(kind)
        if kind == 'immediate_response':
            self.status = reply.immediate_response.status.code
            self.refusal = reply.immediate_response
            return
        if reply.HasField('dynamic_metadata'):
            space = dict(reply.dynamic_metadata).get('envoy.lb')
            if space is not None:
                self.metadata = dict(space).get(DESTINATION)
        part = getattr(reply, kind)
        if kind.endswith('trailers'):
            return
        for option in part.response.header_mutation.set_headers:
            value = option.header.raw_value.decode() or option.header.value
            self.set[option.header.key.lower()] = value
        self.removed += part.response.header_mutation.remove_headers
        self.header = self.set.get(DESTINATION, self.header)
        mutation = part.response.body_mutation
        if mutation.WhichOneof('mutation') == 'streamed_response':
            self.pieces.append(mutation.streamed_response.body)
            self.end = self.end or mutation.streamed_response.end_of_stream
        elif mutation.WhichOneof('mutation') == 'body':
            self.body = mutation.body

    @property
    def targets(self):
        return self.header.split(',') if self.header else []

    @property
    def bytes(self):
        return b''.join(self.pieces)


class Checker:
    def __init__(self, options):
        self.options = options
        self.servers = options.servers
        self.channel = self.connect()
        self.stub = pb_grpc.ExternalProcessorStub(self.channel)

    def connect(self):
        limits = [('grpc.max_send_message_length', -1),
            ('grpc.max_receive_message_length', -1),
            ('grpc.use_local_subchannel_pool', 1)]
        if not self.options.tls:
            return grpc.insecure_channel(self.options.target, limits)
        host, port = self.options.target.rsplit(':', 1)
        pem = ssl.get_server_certificate((host, int(port)))
        limits.append(('grpc.ssl_target_name_override', 'localhost'))
        return grpc.secure_channel(self.options.target,
            grpc.ssl_channel_credentials(pem.encode()), limits)

    # ------------------------------------------------------------- requests

    def ask(self, body, mode=DUPLEX, subset=None, pieces=2, trailers=False,
            config=True, more=(), response=None):
        """Sends a request, and takes all that is answered to it."""
        call = Call(self.stub)
        first = {'request_headers': request_headers(more=more)}
        if config:
            first['protocol_config'] = modes(mode,
                mode if response is None else response)
        if subset is not None:
            first['metadata_context'] = metadata('envoy.lb.subset_hint',
                SUBSET, subset)
        choice = Choice()
        call.send(**first)
        duplex = config and mode == DUPLEX
        if not duplex:
            choice.take(self.must(call.reply()))
            if choice.status:
                return call, choice
        step = max(1, -(-len(body) // pieces)) if duplex else len(body)
        for at in range(0, len(body), step):
            call.send(request_body=pb.HttpBody(body=body[at:at + step],
                end_of_stream=at + step >= len(body) and not trailers))
        if trailers:
            call.send(request_trailers=pb.HttpTrailers())
        while not choice.status:
            choice.take(self.must(call.reply()))
            if trailers and choice.order[-1] == 'request_trailers':
                break
            if not trailers and (choice.end or not duplex):
                break
        return call, choice

    def respond(self, call, status=200, body=b'{"usage":{"prompt_tokens":9,'
            b'"completion_tokens":2,"total_tokens":11}}', served=None,
            kind='application/json', pieces=1, end=True):
        """Shows a response; returns the pieces of its body that come back."""
        first = {'response_headers': pb.HttpHeaders(headers=header_map([
            (':status', str(status)), ('content-type', kind)]))}
        if served is not None:
            first['metadata_context'] = metadata('envoy.lb', SERVED, served)
        call.send(**first)
        head = self.must(call.reply())
        assert head.WhichOneof('response') == 'response_headers', head
        got = Choice()
        step = max(1, -(-len(body) // pieces))
        for at in range(0, len(body), step):
            call.send(response_body=pb.HttpBody(body=body[at:at + step],
                end_of_stream=end and at + step >= len(body)))
        while not got.end and end:
            got.take(self.must(call.reply()))
        return got

    @staticmethod
    def must(reply):
        assert reply is not None, 'the stream has ended'
        return reply

    @contextlib.contextmanager
    def asked(self, *args, **named):
        call, choice = self.ask(*args, **named)
        try:
            yield call, choice
        finally:
            call.cancel()

    def whole(self, body, **named):
        """A request whose response passes."""
        call, choice = self.ask(body, **named)
        if not choice.status:
            self.respond(call)
            call.finish()
        return choice

    # --------------------------------------------------------------- checks

    def check_health(self):
        """all services that data planes ask for are healthy"""
        channels = [self.channel]
        if self.options.health:
            host = self.options.target.rsplit(':', 1)[0]
            channels.append(grpc.insecure_channel('%s:%d' % (host,
                self.options.health)))
        for channel in channels:
            stub = hpb_grpc.HealthStub(channel)
            for name in ('liveness', 'readiness',
                    'envoy.service.ext_proc.v3.ExternalProcessor'):
                reply = stub.Check(hpb.HealthCheckRequest(service=name),
                    timeout=PATIENCE)
                assert reply.status == 1, (name, reply.status)

    def check_health_of_nothing(self):
        """a service that does not exist is not healthy"""
        stub = hpb_grpc.HealthStub(self.channel)
        try:
            reply = stub.Check(hpb.HealthCheckRequest(service='nothing'),
                timeout=PATIENCE)
            assert reply.status != 1
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.NOT_FOUND, error.code()

    def check_lists(self):
        """header and dynamic metadata are the same list"""
        with self.asked(chat()) as (_, choice):
            assert choice.header, 'there is no header'
            assert choice.header == choice.metadata, (choice.header,
                choice.metadata)
            assert set(choice.targets) <= set(self.servers), choice.targets

    def check_fallbacks(self):
        """a list of fallbacks, each server once"""
        with self.asked(chat()) as (_, choice):
            assert len(choice.targets) > 1, choice.targets
            assert len(set(choice.targets)) == len(choice.targets)

    def check_duplex_bytes(self):
        """full duplex: every byte of the body comes back, in order"""
        for pieces in 1, 2, 40:
            body = chat()
            with self.asked(body, pieces=pieces) as (_, choice):
                assert choice.bytes == body, len(choice.bytes)
                assert choice.order[0] == 'request_headers', choice.order
                assert set(choice.order[1:]) == {'request_body'}

    def check_duplex_waits(self):
        """full duplex: headers are held back until the choice"""
        call = Call(self.stub)
        call.send(request_headers=request_headers(),
            protocol_config=modes(DUPLEX, DUPLEX))
        call.silent()
        call.cancel()

    def check_duplex_large(self):
        """full duplex: a body of 400 kB, in pieces that are not too large"""
        body = chat('x ' * 200000)
        with self.asked(body, pieces=25) as (_, choice):
            assert choice.bytes == body, len(choice.bytes)
            assert max(map(len, choice.pieces)) <= 65536

    def check_duplex_trailers(self):
        """full duplex: a body that ends with trailers"""
        body = chat()
        with self.asked(body, trailers=True) as (_, choice):
            assert choice.header and choice.bytes == body
            assert choice.order[-1] == 'request_trailers'

    def check_no_body(self):
        """a request without a body gets a server"""
        call = Call(self.stub)
        call.send(request_headers=request_headers('/v1/models', end=True),
            protocol_config=modes(DUPLEX, DUPLEX))
        choice = Choice()
        choice.take(self.must(call.reply()))
        call.cancel()
        assert choice.header or choice.status, choice.order
        assert choice.header == choice.metadata

    def check_buffered(self):
        """buffered mode"""
        with self.asked(chat(), mode=BUFFERED) as (_, choice):
            assert choice.header and choice.header == choice.metadata
            assert not choice.pieces, 'a streamed piece'

    def check_buffered_without_config(self):
        """a data plane that names no mode gets no streamed pieces"""
        with self.asked(chat(), mode=BUFFERED, config=False) as (_, choice):
            assert choice.header and not choice.pieces

    def check_subset_list(self):
        """subset as a list of one: only that server"""
        for server in self.servers:
            with self.asked(chat(), subset=[server]) as (_, choice):
                assert choice.targets == [server], choice.targets
                assert choice.metadata == server

    def check_subset_text(self):
        """subset as text: no other server"""
        subset = self.servers[:1] + self.servers[2:]
        with self.asked(chat(), subset=','.join(subset)) as (_, choice):
            assert choice.targets, choice.status
            assert set(choice.targets) <= set(subset), choice.targets

    def check_subset_blanks(self):
        """subset as text with blanks behind the commas"""
        with self.asked(chat(), subset=', '.join(self.servers)) as (_, choice):
            assert choice.targets, choice.status

    def check_subset_empty(self):
        """an empty subset: 503"""
        for subset in [], '':
            with self.asked(chat(), subset=subset) as (_, choice):
                assert choice.status == 503, choice.status

    def check_subset_unknown(self):
        """a subset of unknown servers: 503"""
        with self.asked(chat(), subset=['10.9.9.9:1']) as (_, choice):
            assert choice.status == 503, choice.status

    def check_subset_mixed(self):
        """unknown servers in a subset do no harm"""
        with self.asked(chat(), subset=['10.9.9.9:1', self.servers[1]]) as (
                _, choice):
            assert choice.targets == [self.servers[1]], choice.targets

    def check_subset_buffered(self):
        """subset in buffered mode"""
        with self.asked(chat(), mode=BUFFERED, subset=[self.servers[2]]) as (
                _, choice):
            assert choice.targets == [self.servers[2]], choice.targets

    def check_bodies(self):
        """bodies that are no JSON, or empty objects, are routed"""
        for body in b'{broken', b'{}', b'\xff\xfe\x00', b'[' * 5000:
            with self.asked(body) as (_, choice):
                assert choice.header and not choice.status, body[:10]
                assert choice.bytes == body

    def check_response(self):
        """full duplex: every byte of the response comes back"""
        call, choice = self.ask(chat())
        text = b'{"choices":[],"usage":{"prompt_tokens":700}}'
        got = self.respond(call, body=text, pieces=3,
            served=choice.targets[0])
        assert got.bytes == text and got.end, got.bytes
        assert call.finish() == grpc.StatusCode.OK

    def check_response_stream(self):
        """a stream of 64 events comes back, event by event"""
        call, _ = self.ask(chat(stream=True))
        call.send(response_headers=pb.HttpHeaders(headers=header_map([
            (':status', '200'), ('content-type', 'text/event-stream')])))
        self.must(call.reply())
        sent = b''
        got = Choice()
        for i in range(64):
            event = b'data: {"choices":[{"index":0,"delta":{"content":' \
                b'"word %d"}}]}\n\n' % i
            sent += event
            call.send(response_body=pb.HttpBody(body=event))
            got.take(self.must(call.reply()))
        event = b'data: [DONE]\n\n'
        call.send(response_body=pb.HttpBody(body=event, end_of_stream=True))
        while not got.end:
            got.take(self.must(call.reply()))
        assert got.bytes == sent + event, (len(got.bytes), len(sent))
        assert call.finish() == grpc.StatusCode.OK

    def check_response_trailers(self):
        """a response that ends with trailers"""
        call, _ = self.ask(chat())
        self.respond(call, body=b'{"a":1}', end=False)
        self.must(call.reply())
        call.send(response_trailers=pb.HttpTrailers())
        reply = self.must(call.reply())
        assert reply.WhichOneof('response') == 'response_trailers'
        assert call.finish() == grpc.StatusCode.OK

    def check_response_buffered(self):
        """a response in buffered mode"""
        call, _ = self.ask(chat(), mode=BUFFERED)
        call.send(response_headers=pb.HttpHeaders(headers=header_map([
            (':status', '200'), ('content-type', 'application/json')])))
        assert self.must(call.reply()).HasField('response_headers')
        call.send(response_body=pb.HttpBody(body=b'{}', end_of_stream=True))
        assert self.must(call.reply()).HasField('response_body')
        assert call.finish() == grpc.StatusCode.OK

    def check_half(self):
        """a data plane that shows requests only"""
        for _ in range(20):
            call, choice = self.ask(chat(), response=NONE)
            assert choice.header
            assert call.finish() == grpc.StatusCode.OK

    def check_resets(self):
        """3,000 streams that are reset, on one connection"""
        channel = self.connect()
        stub = pb_grpc.ExternalProcessorStub(channel)
        body = chat('short')
        for _ in range(3000):
            requests = iter([pb.ProcessingRequest(
                request_headers=request_headers(),
                protocol_config=modes(DUPLEX, DUPLEX)),
                pb.ProcessingRequest(request_body=pb.HttpBody(body=body,
                    end_of_stream=True))])
            call = stub.Process(requests)
            next(call)
            call.cancel()
        channel.close()
        self.check_lists()

    def check_many_at_once(self):
        """200 requests at a time"""
        calls = [Call(self.stub) for _ in range(200)]
        for call in calls:
            call.send(request_headers=request_headers(),
                protocol_config=modes(DUPLEX, DUPLEX))
        for i, call in enumerate(calls):
            call.send(request_body=pb.HttpBody(body=chat('number %d' % i),
                end_of_stream=True))
        for call in calls:
            choice = Choice()
            while not choice.end and not choice.status:
                choice.take(self.must(call.reply()))
            assert choice.header or choice.status == 429
        for call in calls:
            call.cancel()

    def check_spread(self):
        """different prompts spread over servers"""
        firsts = set()
        open_calls = []
        for i in range(4 * len(self.servers)):
            call, choice = self.ask(chat('%d ' % i + PROMPT * 3))
            open_calls.append(call)
            firsts.update(choice.targets[:1])
        for call in open_calls:
            call.cancel()
        assert len(firsts) > 1, firsts

    def check_methods(self):
        """a method that does not exist is unimplemented"""
        call = self.channel.unary_unary('/nothing.Nothing/Do',
            request_serializer=bytes, response_deserializer=bytes)
        try:
            call(b'', timeout=PATIENCE)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error.code()
        else:
            raise AssertionError('it was answered')

    def check_garbage(self):
        """messages that are no protobuf end their own stream alone"""
        method = '/envoy.service.ext_proc.v3.ExternalProcessor/Process'
        call = self.channel.stream_stream(method, request_serializer=bytes,
            response_deserializer=bytes)
        for garbage in b'\xff' * 100, b'\x12\xff\xff\xff\xff\x0f', \
                b'\x12\x04\x0a\x7f\x0a\x01':
            try:
                got = list(call(iter([garbage]), timeout=PATIENCE))
                raise AssertionError('%r: answered by %r' % (garbage, got))
            except grpc.RpcError as error:
                assert error.code() in BAD_MESSAGE, error.code()
        self.check_lists()

    def check_compression(self):
        """a compressed message is refused or understood, by its own stream"""
        channel = self.connect()
        stub = pb_grpc.ExternalProcessorStub(channel)
        try:
            replies = list(stub.Process(iter([pb.ProcessingRequest(
                request_headers=request_headers('/v1/models', end=True,
                    more=[('x-long', 'a' * 4000)]))]),
                timeout=PATIENCE, compression=grpc.Compression.Gzip))
            assert replies and all(r.HasField('request_headers')
                for r in replies), replies
        except grpc.RpcError as error:
            assert error.code() in (grpc.StatusCode.UNIMPLEMENTED,
                grpc.StatusCode.INTERNAL), error.code()
        channel.close()
        self.check_lists()

    def check_full(self):
        """all places taken: 429 with Retry-After, then a server again"""
        places = self.options.places * len(self.servers)
        if not self.options.places:
            return 'skipped: --places is not given'
        calls, refused = [], []
        for i in range(places + 2):
            call, choice = self.ask(chat('%d' % i))
            (refused if choice.status else calls).append((call, choice))
        assert len(calls) == places and len(refused) == 2, (len(calls),
            len(refused))
        for _, choice in refused:
            assert choice.status == 429, choice.status
            keys = [o.header.key.lower() for o in
                choice.refusal.headers.set_headers]
            assert 'retry-after' in keys, keys
        for call, _ in calls:
            call.cancel()
        time.sleep(0.5)
        with self.asked(chat()) as (_, choice):
            assert not choice.status, choice.status
        return None

    def check_prefill(self):
        """a long prompt: x-prefiller-host-port is of a server that prefills"""
        if not self.options.prefill:
            return 'skipped: --prefill is not given'
        for mode in DUPLEX, BUFFERED:
            prompt = '%d ' % mode + 'words of a long prompt ' * 400
            with self.asked(chat(prompt), mode=mode) as (_, choice):
                assert choice.set.get(PREFILL) in self.options.prefill, \
                    choice.set
                assert set(choice.targets) <= set(self.servers)
        return None

    def check_prefill_of_short_prompts(self):
        """a short prompt: a client's x-prefiller-host-port does not pass"""
        if not self.options.prefill:
            return 'skipped: --prefill is not given'
        for mode in DUPLEX, BUFFERED:
            with self.asked(chat('hi'), mode=mode, more=[(PREFILL,
                    '10.9.9.9:1')]) as (_, choice):
                assert not choice.set.get(PREFILL), choice.set
                assert PREFILL in choice.removed or PREFILL in choice.set
        return None

    def check_prefill_alone(self):
        """a subset of servers that prefill alone: 503"""
        for server in self.options.prefill:
            with self.asked(chat(), subset=[server]) as (_, choice):
                assert choice.status == 503, choice.status

    def check_refusal_body(self):
        """a refusal has a body"""
        with self.asked(chat(), subset=[]) as (_, choice):
            assert choice.refusal.body, 'it is empty'

    # A picker may spare servers that failed, so these are the last.

    def check_response_fallback(self):
        """a response of a server that was not the first"""
        call, choice = self.ask(chat())
        self.respond(call, served=choice.targets[1])
        assert call.finish() == grpc.StatusCode.OK

    def check_response_error(self):
        """a response of status 500, and one without a body"""
        call, _ = self.ask(chat())
        self.respond(call, status=500, body=b'{"error":"x"}')
        assert call.finish() == grpc.StatusCode.OK
        call, _ = self.ask(chat())
        call.send(response_headers=pb.HttpHeaders(headers=header_map([
            (':status', '204')]), end_of_stream=True))
        assert self.must(call.reply()).HasField('response_headers')
        assert call.finish() == grpc.StatusCode.OK

    # ------------------------------------------------------------------ run

    def run(self):
        bad = 0
        names = [n for n in dir(self) if n.startswith('check_') and
            self.options.only in n]
        for name in sorted(names, key=lambda n: getattr(
                type(self), n).__code__.co_firstlineno):
            check = getattr(self, name)
            try:
                result = check() or ''
                word = 'skip' if result else 'ok  '
            except (AssertionError, grpc.RpcError, ValueError) as error:
                word, result = 'FAIL', str(error).split('\n', 1)[0][:200]
                bad += 1
            print(word, check.__doc__, ': ' + result if result else '',
                flush=True)
        print('%d of %d checks failed' % (bad, len(names)))
        return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--tls', action='store_true')
    parser.add_argument('--health', type=int, default=0)
    parser.add_argument('--places', type=int, default=0)
    parser.add_argument('--prefill', action='append', default=[])
    parser.add_argument('--generated', default='')
    parser.add_argument('--only', default='')
    parser.add_argument('target')
    parser.add_argument('servers', nargs='+')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        generate(options.generated or folder)
        return Checker(options).run()


if __name__ == '__main__':
    sys.exit(main())
