/* SPDX-License-Identifier: BSD-2-Clause */
/* call_book.h - the load of a request at its server: a lease of its worker. */
#ifndef KVROUTE_CALL_BOOK_H
#define KVROUTE_CALL_BOOK_H

#include "pool_in.h"

/* How the library is to choose for it, and to book it. */
void request_make(const struct kvh_call *c, struct kvr_request *r);
/* At the first target, whose worker is c->worker, or any of its ranks. */
void target_book(struct kvh_call *c);
/* The engine has accepted a prompt that could not be booked before. */
void call_book_late(struct kvh_call *c);
/* Ends a lease that nothing came of. */
void lease_drop(struct kvh_call *c);

#endif
