/* SPDX-License-Identifier: BSD-2-Clause */
/* capacity_text.c - numbers and names as engines write them. */
#include "capacity_in.h"

uint64_t
capacity_number(const char *digits, size_t n, uint64_t most)
{
	uint64_t value = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return 0;
		value = value * 10 + (uint64_t)(digits[i] - '0');
		if (value > most)
			return 0;
	}
	return value;
}

/* Control characters have no place in a log or a table. */
void
capacity_model_set(char *model, const char *bytes, size_t n)
{
	size_t i;

	if (n > CAPACITY_MODEL_MAX - 1)
		n = CAPACITY_MODEL_MAX - 1;
	for (i = 0; i < n; i++)
		model[i] = (unsigned char)bytes[i] < ' ' || bytes[i] == 127 ?
		    '?' : bytes[i];
	model[n] = '\0';
}
