/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page.h - page.html, the status page for a browser, and how it is sent.
 *
 * The page is static: it fetches the JSON from where it came from. A proxy
 * embeds its bytes when it is built and sends them with these headers, by
 * which the page may run its own script and style, fetch from its own origin,
 * and do nothing else.
 */
#ifndef KVROUTE_PAGE_H
#define KVROUTE_PAGE_H

#define PAGE_TYPE "text/html; charset=utf-8"
#define PAGE_SECURITY_POLICY \
	"default-src 'none'; connect-src 'self'; img-src data:; " \
	"script-src 'unsafe-inline'; style-src 'unsafe-inline'; " \
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

#endif
