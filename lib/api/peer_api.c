/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peer_api.c - public calls on the report about other machines: peers.c.
 */
#include "peers.h"
#include "seat.h"

/* The rows of a caller's array. KVR_ENEWER: it says more than is known here. */
static int
rows_take(struct peer_table *t, const char *peers, size_t element, size_t n)
{
	size_t i, length = element < sizeof(t->row[0]) ? element
	    : sizeof(t->row[0]);

	memset(t->row, 0, n * sizeof(t->row[0]));
	for (i = 0; i < n; i++, peers += element) {
		if (!struct_known(peers, element, sizeof(t->row[0])))
			return KVR_ENEWER;
		memcpy(&t->row[i], peers, length);
	}
	t->rows = n;
	return KVR_OK;
}

static int
report_take(struct peer_table *t, const struct kvr_exchange *exchange,
    const struct kvr_peer *peers, size_t element, size_t n)
{
	struct kvr_exchange x = { .size = sizeof(x) };
	int error = struct_get(&x, sizeof(x), exchange);

	if (error != KVR_OK)
		return error;
	if (x.at < 0 || x.at > CLOCK_MAX)
		return KVR_ECLOCK;
	t->at = x.at;
	t->connected = x.connected;
	t->peers = x.peers;
	memcpy(t->dropped, x.dropped, sizeof(t->dropped));
	memset(t->unused, 0, sizeof(t->unused));
	error = rows_take(t, (const char *)peers, element, n);
	if (error == KVR_OK && !peers_valid(t))
		error = KVR_EINVAL;
	return error;
}

int
kvr_peer_set(struct kvr *k, const struct kvr_exchange *exchange,
    const struct kvr_peer *peers, size_t element, size_t n)
{
	struct peer_table t;
	int error;

	if (k == NULL || exchange == NULL || n > KVR_PEERS_MAX ||
	    (n > 0 && (peers == NULL || element < sizeof(uint64_t) ||
	    element > STRUCT_BYTES_MAX)))
		return KVR_EINVAL;
	if (k->readonly)
		return KVR_EREADONLY;
	if (k->peers == NULL || !seat_here(k))
		return KVR_ESTATE;
	error = report_take(&t, exchange, peers, element, n);
	if (error == KVR_OK)
		peers_put(k, &t);
	return error;
}

int
kvr_peer_list(const struct kvr *k, struct kvr_exchange *exchange,
    struct kvr_peer *peers, size_t element, size_t capacity, size_t *count)
{
	struct kvr_exchange x;
	struct peer_table t;
	size_t i, length = element < sizeof(t.row[0]) ? element
	    : sizeof(t.row[0]);

	if (k == NULL || exchange == NULL || count == NULL ||
	    !struct_has_size(exchange->size) || (capacity > 0 &&
	    (peers == NULL || element < sizeof(uint64_t))))
		return KVR_EINVAL;
	if (k->peers == NULL || (!k->readonly && !seat_here(k)))
		return KVR_ESTATE;
	peers_get(k, &t);
	memset(&x, 0, sizeof(x));
	x.at = t.at;
	x.connected = t.connected;
	x.peers = t.peers;
	memcpy(x.dropped, t.dropped, sizeof(x.dropped));
	struct_put(exchange, exchange->size, &x, sizeof(x));
	for (i = 0; i < t.rows && i < capacity; i++)
		memcpy((char *)peers + i * element, &t.row[i], length);
	*count = i;
	return KVR_OK;
}
