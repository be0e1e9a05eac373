/* SPDX-License-Identifier: BSD-2-Clause */
/* pick_open.c - see pick_open.h. */
#include "pick_open.h"

#include <string.h>

#include "kvroute_http.h"

bool
pick_open(const struct pick_conf *conf, const char *region,
    struct kvh **pool, char error[CONF_ERROR_MAX])
{
	size_t bad = 0;
	const int result = kvh_open(region, strlen(region),
	    (const char *)conf->options.data, conf->options.length, &bad,
	    pool);

	if (result == 0)
		return true;
	if (result == KVH_ENAME || result == KVH_EVALUE)
		(void)snprintf(error, CONF_ERROR_MAX, "%u: %.*s: %s",
		    pick_conf_option_line(conf, bad),
		    (int)strcspn((const char *)conf->options.data + bad,
		        " \t\n"), conf->options.data + bad,
		    kvh_strerror(result));
	else
		(void)snprintf(error, CONF_ERROR_MAX, "1: %s: %s",
		    region[0] == '\0' ? "region" : region,
		    kvh_strerror(result));
	return false;
}

int
pick_put(struct kvh *pool, const struct conf_server *s,
    char error[CONF_ERROR_MAX])
{
	const int result = kvh_server_put(pool, s->name, strlen(s->name),
	    s->facts, strlen(s->facts), NULL);

	if (result != 0)
		(void)snprintf(error, CONF_ERROR_MAX, "%u: server %s: %s",
		    s->line, s->name, kvh_strerror(result));
	return result;
}
