/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page.h - the headers of page.html, the status page for a browser.
 *
 * The page is static: it fetches the JSON from its own address. A proxy embeds
 * the page when it is built and sends it with these headers. They allow the
 * page to run its own script and style and to fetch from its own origin, and
 * nothing else.
 */
#ifndef KVROUTE_PAGE_H
#define KVROUTE_PAGE_H

#define PAGE_TYPE "text/html; charset=utf-8"
#define PAGE_SECURITY_POLICY \
	"default-src 'none'; connect-src 'self'; img-src data:; " \
	"script-src 'unsafe-inline'; style-src 'unsafe-inline'; " \
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

#endif
