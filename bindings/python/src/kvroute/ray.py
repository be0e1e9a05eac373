# SPDX-License-Identifier: BSD-2-Clause
"""A request router for Ray Serve; tested with ray 2.60.0.

    @serve.deployment(request_router_config=RequestRouterConfig(
        request_router_class="kvroute.ray:KvrouteRouter",
        request_router_kwargs={"region": "/run/kvroute"}))

The prompt is the first argument with `messages`, `prompt` or `input`: a dict,
or a model of pydantic. Ray reports that requests were accepted and have ended,
but not the responses, so nothing is learned from usage; of requests that are
sent by DeploymentHandle.choose_replica() nothing is learned at all. Each proxy
and handle has a router of its own; those of one machine share a region in a
file.
"""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Set

from ray.serve.request_router import RequestRouter

from . import Call, How, Pool, Unavailable
from ._served import update


class _Request:
    def __init__(self, call: Call, tried: List[str]) -> None:
        self.call = call
        self.tried = tried  # the last one is asked now
        self.accepted = False


class KvrouteRouter(RequestRouter):
    """Its keyword arguments are those of Pool."""

    def initialize_state(self, **options: Any) -> None:
        self._kvroute = Pool(**options)
        self._requests: Dict[str, _Request] = {}
        self._served: Set[str] = set()

    def update_replicas(self, replicas: List[Any]) -> None:
        super().update_replicas(replicas)
        self._served = update(self._kvroute, self._served, (
            r.replica_id.unique_id for r in replicas))

    async def choose_replicas(
            self, candidate_replicas: List[Any],
            pending_request: Optional[Any] = None) -> List[List[Any]]:
        if pending_request is None or not candidate_replicas:
            return [candidate_replicas]
        by_name = {r.replica_id.unique_id: r for r in candidate_replicas}
        key = pending_request.metadata.internal_request_id
        # Ray asks again if the replica has no room for the request.
        tried = self._end(key, How.GIVEN_UP)
        left = [name for name in by_name if name not in tried]
        call = self._kvroute.call(_path(pending_request)).request(
            _body(pending_request))
        try:
            server = call.pick(allow=left or by_name)[0]
        except Unavailable:
            return [candidate_replicas]
        self._requests[key] = _Request(call, [*tried, server] if left else
                                       [server])
        # Ray reports nothing of a request that is cancelled before it is sent.
        pending_request.future.add_done_callback(
            lambda future: self._cancelled(future, key))
        return [[by_name[server]]]

    def on_request_routed(self, pending_request: Any, replica_id: Any,
                          result: Any) -> None:
        request = self._requests.get(
            pending_request.metadata.internal_request_id)
        if request is not None:
            request.call.response(200)
            request.accepted = True

    def on_request_completed(self, replica_id: Any,
                             internal_request_id: str) -> None:
        # A replica that rejected a request completes it too, perhaps when
        # another one is asked already.
        request = self._requests.get(internal_request_id)
        if request is not None and request.tried[-1] == replica_id.unique_id:
            self._end(internal_request_id, How.WHOLE if request.accepted else
                      How.GIVEN_UP)

    def on_replica_actor_died(self, replica_id: Any) -> None:
        super().on_replica_actor_died(replica_id)
        name = replica_id.unique_id
        for key, request in list(self._requests.items()):
            if request.tried[-1] == name:
                self._end(key, How.ENGINE_BROKE)
        if name in self._served:
            self._served.remove(name)
            self._kvroute.remove(name)

    def _cancelled(self, future: Any, key: str) -> None:
        if future.cancelled():
            self._end(key, How.GIVEN_UP)

    def _end(self, key: str, how: How) -> List[str]:
        """Returns the replicas that it was tried at."""
        request = self._requests.pop(key, None)
        if request is None:
            return []
        request.call.end(how)
        return request.tried


def _prompt(request: Any) -> Any:
    for value in (*request.args, *request.kwargs.values()):
        if hasattr(value, "model_dump"):
            value = value.model_dump(exclude_none=True)
        if isinstance(value, dict) and not value.keys().isdisjoint(
                ("messages", "prompt", "input")):
            return value
    return None


def _path(request: Any) -> str:
    prompt = _prompt(request) or {}
    return "/v1/chat/completions" if "messages" in prompt else \
        "/v1/completions" if "prompt" in prompt else "/v1/responses"


def _body(request: Any) -> bytes:
    prompt = _prompt(request)
    return json.dumps(prompt, default=str).encode() if prompt else b""
