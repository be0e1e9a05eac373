/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_text.c - see pool_text.h. */
#include "pool_text.h"

#include "pool_in.h"

static int
pair_read(const struct text_row *rows, size_t n, void *fields, const char *pair,
    size_t length, uint32_t *seen)
{
	struct text_fault fault = text_pair(rows, n, fields, pair, length);
	uint32_t bit;

	if (fault.row == NULL)
		return KVH_ENAME;
	bit = UINT32_C(1) << (fault.row - rows);
	if (fault.why != NULL || (*seen & bit) != 0)
		return KVH_EVALUE;
	*seen |= bit;
	return KVR_OK;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int
text_read(const struct text_row *rows, size_t n, void *fields,
    const char *text, size_t length, size_t *bad)
{
	size_t at = 0, end;
	uint32_t seen = 0;
	int error = KVR_OK;

	for (; at < length; at = end) {
		while (at < length && is_blank(text[at]))
			at++;
		for (end = at; end < length && !is_blank(text[end]); end++)
			continue;
		if (end > at)
			error = pair_read(rows, n, fields, text + at, end - at,
			    &seen);
		if (error != KVR_OK)
			break;
	}
	if (error != KVR_OK && bad != NULL)
		*bad = at;
	return error;
}
