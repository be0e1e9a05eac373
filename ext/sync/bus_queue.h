/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bus_queue.h - frames that wait: bounded in bytes, the oldest leaves first.
 */
#ifndef KVROUTE_BUS_QUEUE_H
#define KVROUTE_BUS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUS_SUBJECT_MAX = 128 };

struct bus_item {
	struct bus_item *next;
	size_t n;
	char subject[BUS_SUBJECT_MAX]; /* "": the usual one */
	unsigned char bytes[];
};

/* All 0 but `most`: empty. */
struct bus_queue {
	struct bus_item *first, *last;
	size_t bytes, most; /* with the cost of an item beside its bytes */
	size_t kept;        /* the first ones that may not be dropped */
	uint64_t items;
	uint64_t drops;     /* with those that were not taken */
};

/*
 * Takes a copy; drops the oldest that may be. false: there is no room, no
 * memory, or the subject is too long; counted as dropped.
 */
bool bus_queue_push(struct bus_queue *q, const char *subject,
    const void *bytes, size_t n);
/* The first, which is then yours to free; NULL: none. */
struct bus_item *bus_queue_pop(struct bus_queue *q);
void bus_queue_clear(struct bus_queue *q);

#endif
