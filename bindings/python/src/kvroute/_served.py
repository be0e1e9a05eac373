# SPDX-License-Identifier: BSD-2-Clause
"""The servers of a pool, as a host lists them."""
import logging
from typing import Iterable, Set

from ._library import KvrouteError
from ._pool import Pool


def update(pool: Pool, known: Set[str], listed: Iterable[str]) -> Set[str]:
    """Adds and removes servers. Returns those that the pool has now: one that
    fails keeps no others from it, and is tried again at the next update."""
    wanted, served = set(listed), set(known)
    for server in sorted(wanted ^ known):
        try:
            if server in wanted:
                pool.put(server)
                served.add(server)
            else:
                pool.remove(server)
                served.remove(server)
        except KvrouteError as error:
            logging.getLogger("kvroute").warning("%s", error)
    return served
