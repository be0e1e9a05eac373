/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_prefill.h - disaggregated serving: one server prefills the prompt, and
 * the target decodes.
 *
 *   role      a target   prefills for others   has others prefill for it
 *   both         yes            yes                      no
 *   decode       yes            no                       yes
 *   prefill      no             yes                      no
 *
 * The target is chosen first, as always: a chat stays at the server that has
 * decoded it. If that one lacks more than `split` tokens of the prompt, another
 * prefills it, chosen by its own cache and its load, and is named to the target
 * in a header. Both have a lease:
 *
 *   target    the whole request, and no prefill
 *   other     the prefill, until the first token; what it has computed stays
 *             in its cache
 *
 * Reports of such a target prove nothing: to its engine all blocks from the
 * other one are cached.
 */
#ifndef KVROUTE_CALL_PREFILL_H
#define KVROUTE_CALL_PREFILL_H

#include "pool_in.h"

/*
 * Chooses who prefills, and books it there; false: the target does it itself.
 * The prompt is allowed these servers alone then.
 */
bool prefill_choose(struct kvh_call *c, const struct kvr_request *target);
/* The engine streams; the first token has come. */
void prefill_accepted(struct kvh_call *c);
void prefill_started(struct kvh_call *c);
/*
 * It is over; `taken`: the prompt is in its cache. blamed: the target has
 * answered with an error, which may be of either.
 */
void prefill_end(struct kvh_call *c, bool taken, bool blamed);
/* As prefill_end, if it was not called; and the header is empty. */
void prefill_forget(struct kvh_call *c);

#endif
