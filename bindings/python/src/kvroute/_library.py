# SPDX-License-Identifier: BSD-2-Clause
"""The library, and its errors."""
from __future__ import annotations

import pathlib
from typing import Any

from ._declared import ffi

lib: Any = ffi.dlopen(str(pathlib.Path(__file__).with_name(
    "libkvroute-http.so")))
NOW: int = lib.KVH_NOW
NULL: Any = ffi.NULL


class KvrouteError(Exception):
    """A call of the library failed; `code` is of kvroute_http.h."""

    def __init__(self, code: int, about: str = "") -> None:
        text = ffi.string(lib.kvh_strerror(code)).decode()
        super().__init__(f"{about}: {text}" if about else text)
        self.code = code


class Unavailable(KvrouteError):
    """No server takes the request now: answer with `status`, 503 or 429, and
    `retry_after` seconds."""

    def __init__(self, code: int, retry_after: int) -> None:
        super().__init__(code)
        self.status = 429 if code == lib.KVH_EFULL else 503
        self.retry_after = retry_after


def check(code: int, about: str = "") -> None:
    if code:
        raise KvrouteError(code, about)
