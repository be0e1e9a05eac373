/* SPDX-License-Identifier: BSD-2-Clause */
/* The second turn of a chat goes where the first went. */
#include <kvroute.h>
#include <stdio.h>

static int turn(struct kvr *, struct kvr_prompt *, size_t, int64_t);

int
main(void)
{
	struct kvr *k = NULL;
	struct kvr_prompt *p = NULL;
	uint64_t id;
	int failed = kvr_new(NULL, &k) != KVR_OK ||
	    kvr_worker_add(k, "gpu-0", 5, NULL, &id) != KVR_OK ||
	    kvr_worker_add(k, "gpu-1", 5, NULL, &id) != KVR_OK ||
	    kvr_prompt_new(k, &p) != KVR_OK;

	failed = failed || turn(k, p, 512, 0) || turn(k, p, 768, 5000000000);
	kvr_prompt_free(p);
	kvr_free(k);
	return failed;
}

static int
turn(struct kvr *k, struct kvr_prompt *p, size_t tokens, int64_t now)
{
	static const uint32_t chat[768] = { 101, 2023, 2003 }; /* and zeros */
	struct kvr_decision d = { .size = sizeof(d) };
	char name[KVR_NAME_MAX];
	size_t length;

	if (kvr_prompt_set_tokens(p, NULL, chat, tokens) != KVR_OK ||
	    kvr_lease_open(k, p, NULL, now, &d) != KVR_OK ||
	    kvr_worker_name(k, d.worker, name, sizeof(name), &length) != KVR_OK)
		return 1;
	printf("%zu tokens to %.*s, %d of them cached there\n", tokens,
	    (int)length, name, (int)d.overlap_tokens);
	return kvr_lease_commit(k, d.lease, now, 0) != KVR_OK || /* sent */
	    kvr_lease_first_token(k, d.lease, now + 1000000, 0) != KVR_OK ||
	    kvr_lease_finish(k, d.lease, NULL, now + 2000000, 0) != KVR_OK;
}
