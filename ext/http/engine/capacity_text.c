/* SPDX-License-Identifier: BSD-2-Clause */
/* capacity_text.c - reads numbers and names as engines write them. */
#include "capacity_in.h"

#define CAPACITY_DECIMAL_MOST 1e9

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

double
capacity_decimal(const char *text, size_t n)
{
	double value = 0, place = 1;
	bool point = false, digit = false;
	size_t i;

	for (i = 0; i < n; i++) {
		if (text[i] == '.' && !point) {
			point = true;
			continue;
		}
		if (text[i] < '0' || text[i] > '9')
			return 0;
		digit = true;
		place /= point ? 10 : 1;
		value = point ? value + (text[i] - '0') * place :
		    value * 10 + (text[i] - '0');
	}
	return digit && value < CAPACITY_DECIMAL_MOST ? value : 0;
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
