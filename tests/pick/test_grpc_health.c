/* SPDX-License-Identifier: BSD-2-Clause */
/* test_grpc_health.c - checks and watches, and those that come at the end. */
#include "test.h"

#include <string.h>

#include "fake_stream.h"
#include "grpc_health.h"

enum { SERVING = 1, NOT_SERVING = 2 };

static struct grpc_health health;
static struct h2_stream stream;

static void *
begin(const struct h2_service *service)
{
	memset(&stream, 0, sizeof(stream));
	return service->open(&stream, service->context);
}

/* A request that names no service. */
static void
send_request(const struct h2_service *service, void *call)
{
	struct proto_in in;

	proto_read(&in, "", 0);
	stream.out.length = 0;
	service->message(call, in);
}

static void
ck_status(unsigned want)
{
	struct proto_field f;
	struct proto_in in;

	ck_assert(fake_message(&stream, 0, &in));
	ck_assert(proto_next(&in, &f));
	ck_assert_uint_eq(f.value, want);
}

static void
end(const struct h2_service *service, void *call)
{
	service->closed(call);
	hold_free(&stream.out);
	memset(&health, 0, sizeof(health));
}

START_TEST(check_without_a_message)
{
	const struct h2_service check = grpc_health_check(&health);
	void *call = begin(&check);

	check.finished(call);
	ck_assert(stream.finished);
	ck_assert_int_eq(stream.status, GRPC_INVALID_ARGUMENT);
	end(&check, call);
}
END_TEST

START_TEST(check_with_a_message)
{
	const struct h2_service check = grpc_health_check(&health);
	void *call = begin(&check);

	health.ready = true;
	send_request(&check, call);
	ck_status(SERVING);
	check.finished(call);
	ck_assert_int_eq(stream.status, GRPC_OK);
	end(&check, call);
}
END_TEST

START_TEST(watch_until_the_end)
{
	const struct h2_service watch = grpc_health_watch(&health);
	void *call = begin(&watch);

	send_request(&watch, call);
	ck_status(NOT_SERVING);
	watch.finished(call);
	ck_assert(!stream.finished);
	stream.out.length = 0;
	grpc_health_set(&health, true);
	ck_status(SERVING);
	stream.out.length = 0;
	grpc_health_end(&health);
	ck_status(NOT_SERVING);
	ck_assert_int_eq(stream.status, GRPC_UNAVAILABLE);
	end(&watch, call);
}
END_TEST

START_TEST(watch_after_the_end)
{
	const struct h2_service watch = grpc_health_watch(&health);
	void *call = begin(&watch);

	grpc_health_end(&health);
	send_request(&watch, call);
	ck_status(NOT_SERVING);
	ck_assert(stream.finished);
	ck_assert_int_eq(stream.status, GRPC_UNAVAILABLE);
	end(&watch, call);
}
END_TEST

Suite *suite_grpc_health(void);

Suite *
suite_grpc_health(void)
{
	Suite *s = suite_create("grpc_health");
	TCase *c = tcase_create("grpc_health");

	tcase_add_test(c, check_without_a_message);
	tcase_add_test(c, check_with_a_message);
	tcase_add_test(c, watch_until_the_end);
	tcase_add_test(c, watch_after_the_end);
	suite_add_tcase(s, c);
	return s;
}
