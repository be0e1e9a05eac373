# SPDX-License-Identifier: BSD-2-Clause
# The module is generated from kvroute_http.h when the package is built.
from typing import Any

ffi: Any
