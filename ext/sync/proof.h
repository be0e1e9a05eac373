/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * proof.h - shows that frames with a MAC are of now, and no recording.
 *
 *   here                              a peer
 *   challenge 7f03 ------------------>
 *                  <------------------ proof of 7f03, under its MAC
 *
 * Each daemon draws a number and sends it each second as a challenge. A peer
 * sends it back, and from then on its frames count: that frame cannot have been
 * made without the secret, nor before the number was drawn. The numbers of its
 * frames keep out recordings after that, for as long as the peer is remembered;
 * when one is forgotten another challenge is drawn, which no recording answers.
 */
#ifndef KVROUTE_PROOF_H
#define KVROUTE_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROOF_PEERS_MAX = 256 };

struct proof {
	uint64_t own;        /* challenge */
	size_t n;            /* peers that have sent challenges */
	struct {
		uint64_t origin, challenge;
	} peers[PROOF_PEERS_MAX];
};

/* Draws a challenge. false: the system has no random number; it stays. */
bool proof_draw(struct proof *p);
/* Notes a peer's challenge, to send it back. true: it is news. */
bool proof_heard(struct proof *p, uint64_t origin, uint64_t challenge);
void proof_forget(struct proof *p, uint64_t origin);
/* A peer's challenge. false: it has not been heard. */
bool proof_of(const struct proof *p, uint64_t origin, uint64_t *challenge);

#endif
