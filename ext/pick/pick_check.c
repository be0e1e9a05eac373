/* SPDX-License-Identifier: BSD-2-Clause */
/* pick_check.c - see pick_check.h. */
#include "pick_check.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "kvroute_http.h"
#include "pick_file.h"
#include "pick_fleet.h"
#include "pick_open.h"
#include "tls_server.h"

bool
pick_read(const char *path, struct pick_conf *conf, struct kvh **pool,
    char error[CONF_ERROR_MAX])
{
	if (!pick_file_read(path, conf, error))
		return false;
	if (pick_open(conf, conf->region, pool, error))
		return true;
	pick_conf_free(conf);
	return false;
}

/* Returns how many servers are wrong. */
static size_t
check_servers(const char *path, const struct pick_conf *conf,
    struct kvh *pool)
{
	char error[CONF_ERROR_MAX];
	size_t i, wrong = 0;

	for (i = 0; i < conf->n; i++) {
		if (pick_put(pool, &conf->servers[i], error) == 0)
			continue;
		warnx("%s:%s", path, error);
		wrong++;
	}
	return wrong;
}

static bool
is_new_name(const struct pick_conf *conf, size_t place)
{
	const char *name = conf->servers[place].name;
	size_t i;

	for (i = 0; i < place; i++)
		if (strcmp(conf->servers[i].name, name) == 0)
			return false;
	return !pick_conf_is_address(name);
}

/* Returns how many servers are beyond those whose names can be resolved. */
static size_t
check_names(const char *path, const struct pick_conf *conf)
{
	size_t i, n = 0;

	for (i = 0; i < conf->n; i++)
		if (is_new_name(conf, i) && ++n > FLEET_NAMES_MAX)
			warnx("%s:%u: server %s: more than %d names", path,
			    conf->servers[i].line, conf->servers[i].name,
			    FLEET_NAMES_MAX);
	return n > FLEET_NAMES_MAX ? n - FLEET_NAMES_MAX : 0;
}

/* With these options. A region that others use is left alone. */
static bool
count_wrong(const char *path, const struct pick_conf *options,
    const struct pick_conf *conf, size_t *wrong)
{
	char error[CONF_ERROR_MAX];
	struct kvh *pool;

	if (!pick_open(options, "", &pool, error)) {
		warnx("%s:%s", path, error);
		return false;
	}
	*wrong = check_servers(path, conf, pool) + check_names(path, conf);
	kvh_free(pool);
	return true;
}

bool
pick_check_servers(const char *path, const struct pick_conf *options,
    const struct pick_conf *conf)
{
	size_t wrong;

	return count_wrong(path, options, conf, &wrong) && wrong == 0;
}

int
pick_check(const char *path, const char *cert)
{
	char error[CONF_ERROR_MAX];
	struct ssl_ctx_st *tls;
	struct pick_conf conf;
	size_t wrong;

	if (!pick_file_read(path, &conf, error))
		errx(ARGS_FAILED, "%s:%s", path, error);
	if (!count_wrong(path, &conf, &conf, &wrong))
		exit(ARGS_FAILED);
	if (cert != NULL) {
		tls = tls_server_new(cert, error);
		if (tls == NULL)
			errx(ARGS_FAILED, "%s: %s", cert, error);
		tls_server_free(tls);
	}
	printf("%zu servers, %zu of them wrong\n", conf.n, wrong);
	pick_conf_free(&conf);
	return wrong == 0 ? 0 : ARGS_FAILED;
}
