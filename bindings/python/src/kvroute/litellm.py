# SPDX-License-Identifier: BSD-2-Clause
"""A routing strategy for LiteLLM's Router; tested with litellm 1.110.2.

    router = litellm.Router(model_list=[...], num_retries=2)
    strategy = KvrouteStrategy(router, affinity="auto")

Each model group has a pool, whose servers are the ids of its deployments. The
call of an attempt goes along in the metadata of its request: LiteLLM reports
successes and failures with these, and where it reports nothing, as for clients
that leave, the call is given up when LiteLLM forgets the request. LiteLLM does
not show headers of clients, the time of the first token, or pieces of streams;
these have usage with stream_options={"include_usage": True}.
"""
from __future__ import annotations

import json
import threading
from typing import Any, Dict, Optional, Set, Tuple
from urllib.parse import quote

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.router import CustomRoutingStrategyBase

from . import Call, Failure, How, Pool, Unavailable
from ._served import update

_KEY = "kvroute"


class _Attempt(str):
    """A text, for those that write metadata, which carries a call."""
    call: Call
    server: str

    def __deepcopy__(self, memo: object) -> _Attempt:
        return self

    def __reduce__(self) -> Tuple[Any, ...]:
        return str, (str(self),)


class KvrouteStrategy(CustomRoutingStrategyBase, CustomLogger):
    """region: begins the names of files, one for each model group, which the
    processes of a proxy share; the group's name follows, quoted as in a URL.
    Other options are those of Pool."""

    def __init__(self, router: litellm.Router, region: str = "",
                 **options: Any) -> None:
        CustomLogger.__init__(self)
        self.router = router
        self.pools: Dict[str, Pool] = {}
        self._region, self._options = region, options
        self._lock = threading.Lock()
        self._known: Dict[str, Set[str]] = {}
        litellm.callbacks.append(self)
        router.register_plugin(self)

    def get_available_deployment(
            self, model: str, messages: Any = None, input: Any = None,
            specific_deployment: Optional[bool] = False,
            request_kwargs: Optional[Dict[str, Any]] = None) -> Any:
        request = request_kwargs if request_kwargs is not None else {}
        pool, deployments = self._pool(model)
        if pool is None or not deployments:
            raise litellm.ServiceUnavailableError(
                f"{model} has no deployments", llm_provider="kvroute",
                model=model)
        call = pool.call(_path(request, input)).request(_body(
            model, messages, input, request))
        try:
            server = call.pick(allow=deployments)[0]
        except Unavailable as error:
            raise litellm.ServiceUnavailableError(
                str(error), llm_provider="kvroute", model=model) from error
        attempt = _Attempt(server)
        attempt.call, attempt.server = call, server
        bucket = "litellm_metadata" if "litellm_metadata" in request else \
            "metadata"
        if not isinstance(request.get(bucket), dict):
            request[bucket] = {}
        request[bucket][_KEY] = attempt
        return deployments[server]

    async def async_get_available_deployment(self, *args: Any,
                                             **kwargs: Any) -> Any:
        return self.get_available_deployment(*args, **kwargs)

    def log_success_event(self, kwargs: Any, response_obj: Any,
                          start_time: Any, end_time: Any) -> None:
        call = _call(kwargs)
        if call is not None and not call.ended:
            call.response(200, "application/json")
            if hasattr(response_obj, "model_dump"):
                call.data(_answer(response_obj))
            call.end()

    def log_failure_event(self, kwargs: Any, response_obj: Any,
                          start_time: Any, end_time: Any) -> None:
        call = _call(kwargs)
        if call is None or call.ended:
            return
        error = kwargs.get("exception")
        status = int(getattr(error, "status_code", 0) or 0)
        if isinstance(error, litellm.Timeout) or \
                "Connection error" in str(error):
            call.failed(Failure.BROKE)
        elif isinstance(error, litellm.APIConnectionError):
            call.failed(Failure.NOT_SENT)
        elif status == 429 or status >= 500:
            call.failed(Failure.STATUS, status)
        elif status >= 400:
            call.response(status)
        call.end(How.WHOLE)

    async def async_log_success_event(self, *args: Any, **kwargs: Any) -> None:
        self.log_success_event(*args, **kwargs)

    async def async_log_failure_event(self, *args: Any, **kwargs: Any) -> None:
        self.log_failure_event(*args, **kwargs)

    def _pool(self, model: str) -> Tuple[Optional[Pool], Dict[str, Any]]:
        """The pool with the deployments that the group has now. Clients choose
        the names of models, so there is no pool for one without deployments."""
        with self._lock:
            deployments = {d["model_info"]["id"]: d for d in
                           self.router.registry().deployments(model) or ()}
            pool = self.pools.get(model)
            if pool is None and deployments:
                pool = Pool(region=f"{self._region}.{quote(model, safe='')}"
                            if self._region else "", **self._options)
                self.pools[model] = pool
            if pool is not None:
                self._known[model] = update(
                    pool, self._known.get(model, set()), deployments)
        return pool, deployments


def _path(request: Dict[str, Any], input: Any) -> str:
    """LiteLLM does not name the endpoint."""
    newer = "litellm_metadata" in request
    if input is not None:
        return "/v1/responses" if newer else "/v1/embeddings"
    return "/v1/completions" if "prompt" in request else \
        "/v1/chat/completions"


def _body(model: str, messages: Any, input: Any,
          request: Dict[str, Any]) -> bytes:
    body = {name: value for name, value in request.items()
            if not name.startswith(("_", "litellm_", "metadata"))}
    body["model"] = model
    if messages is not None:
        body["messages"] = messages
    if input is not None:
        body["input"] = input
    return json.dumps(body, default=str).encode()


def _answer(response: Any) -> bytes:
    """LiteLLM puts usage of chats into responses of /v1/responses, whose form
    has no members for it."""
    answer = response.model_dump(mode="json", exclude_none=True)
    usage: Any = getattr(response, "usage", None)
    if answer.get("object") == "response" and hasattr(usage, "prompt_tokens"):
        cached = getattr(usage.prompt_tokens_details, "cached_tokens", None)
        answer["usage"] = {
            "input_tokens": usage.prompt_tokens,
            "output_tokens": usage.completion_tokens,
            "input_tokens_details": {} if cached is None else
            {"cached_tokens": cached}}
    return json.dumps(answer).encode()


def _call(kwargs: Dict[str, Any]) -> Optional[Call]:
    """The call of the attempt that an event is about."""
    known = kwargs.get("litellm_params") or {}
    served = (known.get("model_info") or {}).get("id")
    for bucket in ("metadata", "litellm_metadata"):
        attempt = (known.get(bucket) or {}).get(_KEY)
        if isinstance(attempt, _Attempt) and attempt.server == served:
            return attempt.call
    return None
