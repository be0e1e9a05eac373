/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_secret.c - see ngx_http_kvroute_secret.h. */
#include "ngx_http_kvroute_secret.h"

enum { SECRET_BYTES = 32 };

/* 64 digits, and perhaps the end of their line. */
static bool
hex_read(u_char *text, size_t n, unsigned char *secret)
{
	ngx_int_t byte;
	size_t i;

	while (n > 2 * SECRET_BYTES &&
	    (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	for (i = 0; i < SECRET_BYTES && n == 2 * SECRET_BYTES; i++) {
		byte = ngx_hextoi(text + 2 * i, 2);
		if (byte == NGX_ERROR)
			return false;
		secret[i] = (unsigned char)byte;
	}
	return n == 2 * SECRET_BYTES;
}

static const char *
secret_take(u_char *text, ssize_t n, struct kvr_options *options)
{
	static const unsigned char zeros[SECRET_BYTES];

	if (n == SECRET_BYTES)
		ngx_memcpy(options->secret, text, SECRET_BYTES);
	else if (n < 0 || !hex_read(text, (size_t)n, options->secret))
		return "the file holds neither 32 bytes nor 64 hexadecimal "
		    "digits";
	if (ngx_memcmp(options->secret, zeros, SECRET_BYTES) == 0)
		return "the secret is zero";
	options->secret_bytes = SECRET_BYTES;
	return NULL;
}

const char *
ngx_http_kvroute_secret_read(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *file)
{
	u_char text[2 * SECRET_BYTES + 3];
	ngx_str_t path = *file;
	ngx_file_info_t info;
	const char *why;
	ngx_fd_t fd;

	if (path.len == 0 ||
	    ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK)
		return "";
	fd = ngx_open_file(path.data, NGX_FILE_RDONLY | NGX_FILE_NONBLOCK,
	    NGX_FILE_OPEN, 0);
	if (fd == NGX_INVALID_FILE) {
		ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
		    ngx_open_file_n " \"%V\" failed", &path);
		return "the file cannot be opened";
	}
	if (ngx_fd_info(fd, &info) != 0 || !ngx_is_file(&info)) {
		why = "it is no file";
	} else {
		if ((info.st_mode & (S_IROTH | S_IWOTH)) != 0)
			ngx_conf_log_error(NGX_LOG_WARN, cf, 0, "other users "
			    "may read or write the secret in \"%V\"", &path);
		why = secret_take(text, ngx_read_fd(fd, text, sizeof(text)),
		    &up->options);
	}
	(void)ngx_close_file(fd);
	return why;
}
