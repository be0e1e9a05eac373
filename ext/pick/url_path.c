/* SPDX-License-Identifier: BSD-2-Clause */
/* url_path.c - see url_path.h. */
#include "url_path.h"

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t
url_path(const char *text, size_t n, char path[URL_PATH_MAX])
{
	const char *at = text, *end = text + n;
	size_t length = 0;
	int high, low;

	for (; at < end && *at != '?' && *at != '#' && length < URL_PATH_MAX;
	    at++) {
		path[length] = *at;
		if (*at == '%' && end - at > 2) {
			high = hex_value(at[1]);
			low = hex_value(at[2]);
			if (high >= 0 && low >= 0) {
				path[length] = (char)(high * 16 + low);
				at += 2;
			}
		}
		length++;
	}
	return length;
}
