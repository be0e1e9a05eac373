/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_secret.c - see ngx_http_kvroute_secret.h. */
#include "ngx_http_kvroute_secret.h"

#include "secret_text.h"

const char *
ngx_http_kvroute_secret_read(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *file)
{
	char text[SECRET_TEXT_ROOM];
	ngx_str_t path = *file;
	ngx_file_info_t info;
	const char *why;
	ngx_fd_t fd;
	ssize_t n;

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
		n = ngx_read_fd(fd, text, sizeof(text));
		why = secret_text_read(&up->options, text,
		    n < 0 ? 0 : (size_t)n);
	}
	(void)ngx_close_file(fd);
	return why;
}
