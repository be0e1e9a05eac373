/* SPDX-License-Identifier: BSD-2-Clause */
/* must.h - a harness aborts where a thing that always holds does not. */
#ifndef KVROUTE_FUZZ_MUST_H
#define KVROUTE_FUZZ_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define MUST(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, \
			    __LINE__, #what); \
			abort(); \
		} \
	} while (0)

#endif
