/* SPDX-License-Identifier: BSD-2-Clause */
/* body_blocks.c - see body_blocks.h. */
#include "body_blocks.h"

const unsigned char body_escaped[256] = {
	['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f',
	['n'] = '\n', ['r'] = '\r', ['t'] = '\t'
};

size_t
body_begun_by(const unsigned char *p, size_t n)
{
	size_t has;
	unsigned char c;

	for (has = 1; has < 4 && has <= n; has++) {
		c = p[n - has];
		if (c >= 0xc0)
			return (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) > has ?
			    has : 0;
		if (c < 0x80)
			break;
	}
	return 0;
}
