# SPDX-License-Identifier: BSD-2-Clause
"""Pools of servers, and calls: one for each request."""
from __future__ import annotations

import enum
import itertools
import json
import os
import threading
import time
from typing import (Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple,
                    Optional, Sequence, Set, Tuple, Union)

from ._declared import ffi
from ._library import NOW, NULL, KvrouteError, Unavailable, check, lib

Bytes = Union[bytes, bytearray, memoryview]
Text = Union[str, bytes]
_PUTS = 1000  # where other processes keep the region locked

Headers = Union[Mapping[str, str], Iterable[Tuple[Text, Text]]]


class Failure(enum.IntEnum):
    """Why a server did not answer."""
    REFUSED = lib.KVH_REFUSED
    BROKE = lib.KVH_BROKE
    STATUS = lib.KVH_STATUS
    NOT_SENT = lib.KVH_NOT_SENT


class How(enum.IntEnum):
    """How a call has ended."""
    WHOLE = lib.KVH_WHOLE
    CLIENT_LEFT = lib.KVH_CLIENT_LEFT
    ENGINE_BROKE = lib.KVH_ENGINE_BROKE
    GIVEN_UP = lib.KVH_GIVEN_UP
    NOT_SEEN = lib.KVH_NOT_SEEN


class Usage(NamedTuple):
    """Tokens, as the engine counted them."""
    prompt: int
    cached: int
    completion: int


class Poll(NamedTuple):
    """A question to an engine: GET of the path, see Pool.poll()."""
    server: str
    path: str
    token: int


def _option(name: str, value: object) -> str:
    if isinstance(value, bool):
        text = "on" if value else "off"
    else:
        text = str(value)
    if not text or any(c.isspace() for c in text):
        raise ValueError(f"{name}: {text!r}")
    return f"{name}={text}"


def _options(options: Mapping[str, object]) -> str:
    """In the library `affinity` is the size of a table, a number, and a text
    here is the key of sessions."""
    return " ".join(
        _option("affinity_key" if name == "affinity" and isinstance(value, str)
                else name, value)
        for name, value in options.items() if value is not None)


def _word_at(text: bytes, offset: int) -> str:
    return text[offset:].decode().partition(" ")[0]


def _bytes(text: Text) -> bytes:
    return text if isinstance(text, bytes) else text.encode(
        "utf-8", "surrogateescape")


def _memory(piece: Bytes) -> Tuple[Any, int]:
    """As two arguments of the library."""
    if isinstance(piece, bytes):
        return piece, len(piece)
    return ffi.from_buffer(piece), memoryview(piece).nbytes


def _text_of(text: Text) -> str:
    return text if isinstance(text, str) else text.decode(
        "utf-8", "surrogateescape")


def _pairs(headers: Headers) -> Iterable[Tuple[Text, Text]]:
    return headers.items() if isinstance(headers, Mapping) else headers


class _Use:
    """A pool that is not freed in the block, because one of its functions
    runs in some thread."""

    __slots__ = ("_pool",)

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def __enter__(self) -> Any:
        pool = self._pool
        pool._check_process()
        with pool._lock:
            pool._uses += 1
            if not pool._closed:
                return pool._h
            pool._uses -= 1
        raise KvrouteError(lib.KVH_EORDER, "the pool is closed")

    def __exit__(self, *error: object) -> None:
        pool = self._pool
        with pool._lock:
            pool._uses -= 1
        if pool._closed:
            pool._free()


class Pool:
    """Servers of one model, and the prompts that their caches hold.

    servers: names, which are addresses, and perhaps facts of each, such as
    "capacity=400000"; region: a file that processes share, or none; options as
    of kvroute-http(7), True and False for on and off. Any thread may use a
    pool. A process opens its own: in a child after fork() every call fails,
    close() and the ends of with statements do nothing.
    """

    _h: Any = None

    def __init__(self, servers: Union[Mapping[str, str], Iterable[str]] = (),
                 *, region: Union[str, "os.PathLike[str]"] = "",
                 **options: object) -> None:
        self._waiting: Dict[Any, Call] = {}
        self._open: Set[int] = set()
        self._uses = 0
        self._closed = False
        # Garbage may be collected, so calls and pools end, within the lock.
        self._lock = threading.RLock()
        self._due = 0.0
        self._pid = os.getpid()
        path, text = os.fsencode(region), _options(options).encode()
        pool, bad = ffi.new("struct kvh **"), ffi.new("size_t *")
        code = lib.kvh_open(path, len(path), text, len(text), bad, pool)
        if code in (lib.KVH_ENAME, lib.KVH_EVALUE):
            raise KvrouteError(code, _word_at(text, bad[0]))
        check(code, os.fsdecode(path))
        self._h = pool[0]
        for name in servers:
            self.put(name, servers[name] if isinstance(servers, Mapping)
                     else "")

    def put(self, server: str, facts: str = "") -> None:
        """Adds a server, or changes its facts: "capacity=400000 state=drain".
        Facts that are not named have their defaults."""
        name, text, bad = server.encode(), facts.encode(), ffi.new("size_t *")
        for _ in range(_PUTS):
            with _Use(self) as h:
                code = lib.kvh_server_put(h, name, len(name), text, len(text),
                                          bad)
            if code != lib.KVR_EBUSY:
                break
            self.tick()
        if code:
            raise KvrouteError(code, f"{server} {_word_at(text, bad[0])}")

    def remove(self, server: str) -> None:
        """No more requests for it; it is forgotten when its last has ended."""
        self.put(server, "state=gone")

    def reset(self, server: str) -> None:
        """Its engine was restarted, so its cache is empty."""
        name = server.encode()
        with _Use(self) as h:
            check(lib.kvh_server_reset(h, name, len(name), NOW), server)

    def call(self, path: str = "/v1/chat/completions",
             method: str = "POST") -> Call:
        """A request begins. The path has no query and is percent-decoded."""
        if time.monotonic() >= self._due:
            self.tick()
        return Call(self, path, method)

    def tick(self) -> float:
        """Does what is due; call() does it too. Returns when to call again, in
        seconds from now, if there are no requests."""
        due = ffi.new("int64_t *")
        with _Use(self) as h:
            check(lib.kvh_tick(h, NOW, due))
        now = time.monotonic()
        self._due = due[0] / 1e9
        return max(0.0, self._due - now)

    def turns(self) -> List[Call]:
        """Calls that wait() and are to pick() now: after each end and tick."""
        out = ffi.new("struct kvh_call **")
        calls: List[Call] = []
        with _Use(self) as h:
            while True:
                code = lib.kvh_turn(h, NOW, out)
                if code == lib.KVH_EEND:
                    return calls
                check(code)
                call = self._waiting.pop(out[0], None)
                if call is not None:
                    calls.append(call)

    def poll(self) -> Optional[Poll]:
        """The next question to an engine that is due, for its capacity or
        load, as the options ask for. polled() takes the response."""
        name = ffi.new("char []", lib.KVH_NAME_MAX)
        path = ffi.new("const char **")
        sizes, token = ffi.new("size_t [2]"), ffi.new("uint64_t *")
        with _Use(self) as h:
            code = lib.kvh_poll_next(h, NOW, name, lib.KVH_NAME_MAX, sizes,
                                     path, sizes + 1, token)
            if code == lib.KVH_EEND:
                return None
            check(code)
            return Poll(_text(name, sizes[0]), _text(path[0], sizes[1]),
                        token[0])

    def polled(self, poll: Poll, status: int, body: Bytes = b"") -> bool:
        """The response to a question; status 0: there was no response. False:
        it is too late."""
        with _Use(self) as h:
            code = lib.kvh_poll_done(h, poll.token, status, *_memory(body),
                                     NOW)
        if code != lib.KVH_EEND:
            check(code)
        return bool(code == 0)

    def status(self) -> Dict[str, Any]:
        """As kvroute_status of nginx."""
        status: Dict[str, Any] = json.loads(self._status(lib.KVH_JSON))
        return status

    def metrics(self) -> str:
        """The same for Prometheus."""
        return self._status(lib.KVH_PROMETHEUS)

    def close(self) -> None:
        """Calls that are open end first; those that begin fail."""
        if not self._is_of_parent():
            self._closed = True
            self._free()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._h is not None:
            self.close()

    def _is_of_parent(self) -> bool:
        """In a child after fork(): another thread of the parent may have had
        its locks, and its calls are not the child's to end."""
        return _forked and os.getpid() != self._pid

    def _check_process(self) -> None:
        if self._is_of_parent():
            raise KvrouteError(lib.KVH_EORDER, "the pool is of the parent "
                               "process: open one after fork()")

    def _free(self) -> None:
        """Once it is closed: by its last user."""
        with self._lock:
            if self._uses or self._open:
                return
            # One step, so that no collection of garbage comes between.
            pool = self.__dict__.pop("_h", None)
        if pool is not None:
            lib.kvh_free(pool)

    def _status(self, form: int) -> str:
        room, length = 1 << 16, ffi.new("size_t *")
        while True:
            text = ffi.new("char []", room)
            with _Use(self) as h:
                check(lib.kvh_status(h, form, NOW, text, room, length))
            if length[0] <= room:
                return _text(text, length[0])
            room = length[0] + 4096


class _Results(threading.local):
    """Where the library writes results, which are read at once."""

    def __init__(self) -> None:
        self.text, self.size = ffi.new("const char **"), ffi.new("size_t *")
        self.count, self.rank = ffi.new("uint32_t *"), ffi.new("int32_t *")
        self.fact, self.cut = ffi.new("int64_t *"), ffi.new("uint64_t *")
        self.call = ffi.new("struct kvh_call **")


_results = _Results()
_UNAVAILABLE = (lib.KVH_ENOSERVER, lib.KVH_EFULL, lib.KVH_EKEPT)
_allocate = ffi.new_allocator(should_clear_after_alloc=False)
_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_after_fork)


def _text(text: Any, size: int) -> str:
    return str(ffi.unpack(text, size).decode("utf-8", "replace"))


class Call:
    """One request, of one thread or task at a time. It may end at any point,
    and one that is forgotten is given up. Made by Pool.call().

    In a with statement it ends with the block: as a whole response if there
    was one, and after an exception as if the client had left, so that no
    server is blamed. Report the failures of servers by failed() and
    end(How.ENGINE_BROKE).
    """

    __slots__ = ("_c", "_pool", "_body", "_pieces", "_picked", "_answered",
                 "_rewrites", "_ended", "_refusal", "__weakref__")

    def __init__(self, pool: Pool, path: str, method: str) -> None:
        self._c: Any = None
        self._pool = pool
        self._body: Optional[Bytes] = None
        self._pieces = self._refusal = 0
        self._picked = self._answered = self._rewrites = self._ended = False
        m, p, out = _bytes(method), _bytes(path), _results.call
        with _Use(pool) as h:
            check(lib.kvh_begin(h, m, len(m), p, len(p), NOW, out))
            self._c = out[0]
            # Another call may have the same address before this one has left.
            pool._open.add(id(self))

    # ---------------------------------------------------------- request

    def tell(self, *, session: str = "", tenant: str = "", model: str = "",
             salt: str = "", share: int = 0, bypass: bool = False,
             endpoint: str = "", client: str = "") -> Call:
        """Facts in place of those of path, headers and body; before the body.
        Sessions stay together, and tenants share no prompts. client: its
        address, because failures of several clients count against a server."""
        c = self._handle()
        for what, value in (
                (lib.KVH_TOLD_SESSION, session), (lib.KVH_TOLD_TENANT, tenant),
                (lib.KVH_TOLD_MODEL, model), (lib.KVH_TOLD_SALT, salt),
                (lib.KVH_TOLD_SHARE, str(share) if share else ""),
                (lib.KVH_TOLD_BYPASS, "1" if bypass else ""),
                (lib.KVH_TOLD_ENDPOINT, endpoint),
                (lib.KVH_TOLD_CLIENT, client)):
            if value:
                text = _bytes(value)
                check(lib.kvh_tell(c, what, text, len(text)), value)
        return self

    def headers(self, headers: Headers) -> Call:
        c = self._handle()
        for name, value in _pairs(headers):
            n, v = _bytes(name), _bytes(value)
            check(lib.kvh_header(c, n, len(n), v, len(v)))
        return self

    def body(self, piece: Bytes) -> Call:
        """The body, in pieces of any size; then body_end()."""
        check(lib.kvh_body(self._handle(), *_memory(piece)))
        self._pieces += 1
        return self

    def body_end(self, whole: bool = True) -> Call:
        """whole: False if the rest is not known; then it is not edited."""
        check(lib.kvh_body_end(self._handle(), whole))
        return self

    def request(self, body: Bytes = b"", headers: Headers = ()) -> Call:
        """Headers, and the whole body."""
        self.headers(headers).body(body).body_end()
        if self._pieces == 1:
            self._body = body
        return self

    def tokens(self, tokens: Sequence[int]) -> Call:
        """The prompt's token ids, in place of a body."""
        check(lib.kvh_tokens(self._handle(), ffi.new("uint32_t []", tokens),
                             len(tokens)))
        return self.body_end()

    # ----------------------------------------------------------- choice

    def pick(self, allow: Optional[Iterable[str]] = None,
             fallbacks: bool = False) -> List[str]:
        """The server to try, at which the load is booked; it is none that
        failed(). allow: no others may be chosen, and none if it is empty.
        fallbacks: others follow, for programs that try them by themselves and
        report it to response()."""
        c = self._handle()
        # An empty name is that of no server.
        for name in () if allow is None else ("", *allow):
            text = name.encode()
            code = lib.kvh_allow(c, text, len(text))
            if code != lib.KVH_ENAME:
                check(code)
        count = _results.count if fallbacks else NULL
        code = lib.kvh_pick(c, NOW, count)
        if code:
            self._raise(code)
        self._picked = True
        return [self._target(i)[0] for i in range(count[0])] if fallbacks \
            else [self._target(0)[0]]

    def _raise(self, code: int) -> None:
        if code in _UNAVAILABLE:
            self._refusal = code
            wait = self._fact(lib.KVH_RETRY_MS)
            raise Unavailable(code, max(1, -(-wait // 1000)))
        check(code)

    def rank(self, target: int = 0) -> Optional[int]:
        """The data-parallel rank that edited_headers() ask for."""
        return self._target(target)[1]

    def prefill(self) -> Optional[str]:
        """The server that prefills for the one picked, which has the role
        decode; edited_headers() name it."""
        name, size = _results.text, _results.size
        code = lib.kvh_prefill(self._handle(), name, size)
        if code == lib.KVH_EEND:
            return None
        check(code)
        return _text(name[0], size[0])

    def failed(self, failure: Failure = Failure.BROKE, status: int = 0) -> None:
        """The first server was tried in vain. Then pick() again, or end()."""
        check(lib.kvh_failed(self._handle(), failure, status, NOW))
        self._picked = self._answered = self._rewrites = False

    def target_failed(self, i: int, failure: Failure = Failure.BROKE,
                      status: int = 0) -> None:
        """So was server i of pick(), and the program goes on to the next one by
        itself: response() has the one that answered as served."""
        check(lib.kvh_target_failed(self._handle(), i, failure, status, NOW))

    def wait(self) -> None:
        """After Unavailable: the call waits in line, with the option queue=,
        until it is one of Pool.turns(). Raises the same error if it cannot.
        kvroute.aio does both."""
        code = lib.kvh_wait(self._handle(), NOW)
        if code == lib.KVH_EFULL:
            self._raise(self._refusal or code)
        check(code)
        self._pool._waiting[self._c] = self

    def edited(self, body: Optional[Bytes] = None) -> Bytes:
        """The body of request() as it is to be sent to the server, or the given
        one, which is whole: a body that came in pieces is not kept."""
        body = self._body if body is None else body
        if body is None:
            raise KvrouteError(lib.KVH_EORDER, "the body came in pieces")
        at, parts = 0, []
        view = memoryview(body).cast("B")
        for offset, cut, text in self._edits():
            if offset != lib.KVH_HEADER:
                parts += [bytes(view[at:offset]), text]
                at = offset + cut
        return b"".join([*parts, bytes(view[at:])]) if parts else body

    def edited_headers(self, headers: Headers = ()) -> Dict[str, str]:
        """Headers as they are to be sent to the server: the given ones, and
        those that kvroute sets or takes out. Names are in lower case, and the
        values of a repeated name are joined."""
        edited: Dict[str, str] = {}
        for pair in _pairs(headers):
            name, value = _text_of(pair[0]).lower(), _text_of(pair[1])
            comma = "; " if name == "cookie" else ", "
            edited[name] = edited[name] + comma + value if name in edited \
                else value
        for offset, _, text in self._edits():
            if offset == lib.KVH_HEADER:
                name, _, value = text.decode().partition(":")
                edited.pop(name, None)
                if value:
                    edited[name] = value.lstrip()
        return edited

    # --------------------------------------------------------- response

    def response(self, status: int, content_type: str = "", coding: str = "",
                 served: str = "") -> bool:
        """The head of the response. coding: its Content-Encoding; served: which
        of several targets answered. True if data() and end() return another
        body, so that its Content-Length is not right. The response of a server
        that failed(), with no pick() since, does not count."""
        c = self._handle()
        if not self._picked:
            return False
        rewrites = _results.count
        t, e, s = _bytes(content_type), _bytes(coding), served.encode()
        check(lib.kvh_response(c, status, t, len(t), e, len(e), s,
                               len(s), NOW, rewrites))
        self._answered = True
        self._rewrites = bool(rewrites[0])
        return self._rewrites

    def data(self, piece: Bytes) -> Bytes:
        """A piece of the response's body. Returns the bytes for the client."""
        c = self._handle()
        if not self._answered:
            return piece
        memory, size = _memory(piece)
        if not self._rewrites:
            check(lib.kvh_response_data(c, memory, size, NOW, NULL, 0, NULL))
            return piece
        room = size + lib.KVH_WRITE_MORE
        out, written = _allocate("char []", room), _results.size
        check(lib.kvh_response_data(c, memory, size, NOW, out, room, written))
        return bytes(ffi.unpack(out, written[0]))

    def end(self, how: How = How.WHOLE) -> bytes:
        """Releases the load and learns. Returns the last bytes for the client:
        only if response() was true are there any. Facts stay readable."""
        c = self._handle()
        if self._ended:
            return b""
        self._ended = True
        self._pool._waiting.pop(c, None)
        if how == How.WHOLE and not self._answered:
            how = How.GIVEN_UP
        if not self._rewrites:
            check(lib.kvh_end(c, how, NOW, NULL, 0, NULL))
            return b""
        room = lib.KVH_WRITE_MORE
        out, written = _allocate("char []", room), _results.size
        check(lib.kvh_end(c, how, NOW, out, room, written))
        return bytes(ffi.unpack(out, written[0]))

    def __enter__(self) -> Call:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if self._pool._is_of_parent():
            return
        if kind is None:
            self.end()
        else:
            self.end(How.CLIENT_LEFT if self._answered else How.GIVEN_UP)

    def __del__(self) -> None:
        c = getattr(self, "_c", None)
        if c is None or self._pool._is_of_parent():
            return
        lib.kvh_call_free(c)
        self._pool._open.discard(id(self))
        if self._pool._closed:
            self._pool._free()

    # ------------------------------------------------------------ facts

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def reason(self) -> str:
        """Why this server was chosen: "cost", "no_body", ..."""
        return self._word(lib.KVH_REASON_WORD)

    @property
    def endpoint(self) -> str:
        """The kind of request: "chat", ..."""
        return self._word(lib.KVH_ENDPOINT_WORD)

    @property
    def model(self) -> str:
        return self._word(lib.KVH_MODEL)

    def explain(self) -> Dict[str, Any]:
        """How it would be routed, as explain of nginx; before pick()."""
        explained: Dict[str, Any] = json.loads(self._word(lib.KVH_EXPLAIN))
        return explained

    @property
    def trace(self) -> Optional[str]:
        """A line for kvroute-replay(1), once the call has ended; of pools with
        trace=True."""
        text, size = _results.text, _results.size
        code = lib.kvh_word(self._handle(), lib.KVH_TRACE, text, size)
        if code == lib.KVH_EEND:
            return None
        check(code)
        return _text(text[0], size[0])

    @property
    def stream(self) -> bool:
        """Was a stream requested?"""
        return bool(self._fact(lib.KVH_STREAM))

    @property
    def prompt_tokens(self) -> int:
        """Estimated."""
        return self._fact(lib.KVH_PROMPT_TOKENS)

    @property
    def overlap_tokens(self) -> int:
        """Predicted to be cached at the server, ..."""
        return self._fact(lib.KVH_OVERLAP_TOKENS)

    @property
    def best_tokens(self) -> int:
        """and where most is."""
        return self._fact(lib.KVH_BEST_TOKENS)

    @property
    def tries(self) -> int:
        return self._fact(lib.KVH_TRIES)

    @property
    def started(self) -> bool:
        """Has the first token come?"""
        return bool(self._fact(lib.KVH_STARTED))

    @property
    def usage(self) -> Optional[Usage]:
        """As the engine reported it, once the call has ended."""
        if self._fact(lib.KVH_REPORT_KIND) == 0:
            return None
        return Usage(self._fact(lib.KVH_REPORT_PROMPT),
                     self._fact(lib.KVH_REPORT_CACHED),
                     self._fact(lib.KVH_REPORT_COMPLETION))

    def _handle(self) -> Any:
        if _forked:
            self._pool._check_process()
        return self._c

    def _fact(self, which: int) -> int:
        value = _results.fact
        check(lib.kvh_fact(self._handle(), which, value))
        return int(value[0])

    def _word(self, which: int) -> str:
        text, size = _results.text, _results.size
        check(lib.kvh_word(self._handle(), which, text, size))
        return _text(text[0], size[0])

    def _target(self, i: int) -> Tuple[str, Optional[int]]:
        name, size, rank = _results.text, _results.size, _results.rank
        check(lib.kvh_target(self._handle(), i, name, size, rank))
        return _text(name[0], size[0]), None if rank[0] < 0 else rank[0]

    def _edits(self) -> Iterator[Tuple[int, int, bytes]]:
        c, offset, cut = self._handle(), _results.fact, _results.cut
        text, size = _results.text, _results.size
        for i in itertools.count():
            code = lib.kvh_edit(c, i, offset, cut, text, size)
            if code == lib.KVH_EEND:
                return
            check(code)
            yield offset[0], cut[0], ffi.unpack(text[0], size[0])
