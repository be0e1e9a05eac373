/* SPDX-License-Identifier: BSD-2-Clause */
/* engine_load_number.c - reads decimals in the text of an engine. */
#include "engine_load_in.h"

/* Applies an exponent of ten; above the bound the value stays above it. */
static double
scale_by(double value, bool down, int exponent)
{
	for (; exponent > 0 && value > 0 && value <= LOAD_REQUESTS_MOST;
	    exponent--)
		value = down ? value / 10 : value * 10;
	return value;
}

double
load_number(const char *at, const char *end)
{
	double value = 0, place = 1;
	bool down = false;
	int exponent = 0;

	for (; at < end && *at >= '0' && *at <= '9'; at++)
		value = value > LOAD_REQUESTS_MOST ? value :
		    value * 10 + (*at - '0');
	if (at < end && *at == '.')
		for (at++; at < end && *at >= '0' && *at <= '9'; at++)
			value += (*at - '0') * (place /= 10);
	if (at < end && (*at == 'e' || *at == 'E')) {
		at++;
		down = at < end && *at == '-';
		if (at < end && (*at == '-' || *at == '+'))
			at++;
		for (; at < end && *at >= '0' && *at <= '9'; at++)
			exponent = exponent > 400 ? exponent :
			    exponent * 10 + (*at - '0');
	}
	if (at < end && !samples_is_blank(*at))
		return 0;
	value = scale_by(value, down, exponent);
	return value < LOAD_REQUESTS_MOST ? value : LOAD_REQUESTS_MOST;
}
