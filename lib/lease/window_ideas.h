/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window_ideas.h - what modes of windows that are not in force would predict.
 */
#ifndef KVR_WINDOW_IDEAS_H
#define KVR_WINDOW_IDEAS_H

/* Shares of a prompt. */
struct window_ideas {
	double full, ends, dense;
};

#endif
