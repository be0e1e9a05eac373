/* SPDX-License-Identifier: BSD-2-Clause */
/* proof.c - see proof.h. */
#include "proof.h"

#include <unistd.h>

bool
proof_draw(struct proof *p)
{
	uint64_t drawn;

	if (getentropy(&drawn, sizeof(drawn)) != 0)
		return false;
	p->own = drawn;
	return true;
}

/* The place of a peer; n: it has none. */
static size_t
find_peer(const struct proof *p, uint64_t origin)
{
	size_t i = 0;

	while (i < p->n && p->peers[i].origin != origin)
		i++;
	return i;
}

bool
proof_heard(struct proof *p, uint64_t origin, uint64_t challenge)
{
	const size_t i = find_peer(p, origin);

	if (i == PROOF_PEERS_MAX ||
	    (i < p->n && p->peers[i].challenge == challenge))
		return false;
	p->peers[i].origin = origin;
	p->peers[i].challenge = challenge;
	p->n += i == p->n;
	return true;
}

bool
proof_of(const struct proof *p, uint64_t origin, uint64_t *challenge)
{
	const size_t i = find_peer(p, origin);

	if (i < p->n)
		*challenge = p->peers[i].challenge;
	return i < p->n;
}

void
proof_forget(struct proof *p, uint64_t origin)
{
	const size_t i = find_peer(p, origin);

	if (i < p->n)
		p->peers[i] = p->peers[--p->n];
}
