# SPDX-License-Identifier: BSD-2-Clause
"""sgl_kernel.py - the one kernel that SGLang needs on a CPU, in torch.

Its package of kernels on PyPI is for CUDA, and the one for CPUs is not there.
Without kernels of its own for a layer SGLang takes torch's; this one it imports
in any case.
"""


def assign_req_to_token_pool_cpu(requests, table, starts, ends, places, _):
    """Notes where the tokens of requests are: places has those of all."""
    done = 0
    for row, start, end in zip(requests.tolist(), starts.tolist(),
                               ends.tolist()):
        table[row, start:end] = places[done:done + end - start]
        done += end - start


def __getattr__(name):
    """Others are imported, and never called without drafts."""
    if not name.endswith('_cpu'):
        raise AttributeError(name)

    def is_not_there(*_, **__):
        raise NotImplementedError(name)
    return is_not_there
