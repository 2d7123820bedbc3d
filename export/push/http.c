/* SPDX-License-Identifier: Apache-2.0 */
/* http: see the header. Functions and numbers are those of libcurl's interface
 * (curl_easy_setopt(3)), which its soname 4 keeps. */
#include "export/push/http.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "export/push/ending.h"
#include "export/push/reply.h"
#include "export/push/secret.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define LIBRARY "libcurl.so.4"

enum {
	OPT_WRITEDATA = 10001,
	OPT_URL = 10002,
	OPT_USERPWD = 10005,
	OPT_TIMEOUT = 13,
	OPT_POSTFIELDS = 10015,
	OPT_USERAGENT = 10018,
	OPT_HTTPHEADER = 10023,
	OPT_HEADERDATA = 10029,
	OPT_NOPROGRESS = 43,
	OPT_POST = 47,
	OPT_FOLLOWLOCATION = 52,
	OPT_CAINFO = 10065,
	OPT_CONNECTTIMEOUT = 78,
	OPT_HTTP_VERSION = 84,
	OPT_NOSIGNAL = 99,
	OPT_PROTOCOLS = 181,
	OPT_POSTFIELDSIZE_LARGE = 30120,
	OPT_WRITEFUNCTION = 20011,
	OPT_HEADERFUNCTION = 20079,
	OPT_XFERINFOFUNCTION = 20219,
	INFO_RESPONSE_CODE = 0x200000 + 2,
	PROTOCOL_HTTP = 1,
	PROTOCOL_HTTPS = 2,
	HTTP_1_1 = 2,
	GLOBAL_ALL = 3
};
enum { CURL_WRITE_ERROR = 23, CURL_ABORTED = 42 };

struct http {
	void *library, *easy;
	void *(*easy_init)(void);
	void (*easy_cleanup)(void *);
	void (*easy_reset)(void *);
	int (*easy_setopt)(void *, int, ...);
	int (*easy_perform)(void *);
	int (*easy_getinfo)(void *, int, ...);
	const char *(*easy_strerror)(int);
	void *(*slist_append)(void *, const char *);
	void (*slist_free_all)(void *);
	int (*global_init)(long);
};

static bool symbol(struct http *h, const char *name, void *to)
{
	void *found = dlsym(h->library, name);

	memcpy(to, &found, sizeof(found));
	return found;
}

static bool load(struct http *h)
{
	h->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	return h->library && symbol(h, "curl_global_init", &h->global_init) &&
	       symbol(h, "curl_easy_init", &h->easy_init) &&
	       symbol(h, "curl_easy_cleanup", &h->easy_cleanup) &&
	       symbol(h, "curl_easy_reset", &h->easy_reset) &&
	       symbol(h, "curl_easy_setopt", &h->easy_setopt) &&
	       symbol(h, "curl_easy_perform", &h->easy_perform) &&
	       symbol(h, "curl_easy_getinfo", &h->easy_getinfo) &&
	       symbol(h, "curl_easy_strerror", &h->easy_strerror) &&
	       symbol(h, "curl_slist_append", &h->slist_append) &&
	       symbol(h, "curl_slist_free_all", &h->slist_free_all) &&
	       !h->global_init(GLOBAL_ALL) && (h->easy = h->easy_init());
}

int http_new(struct http **out, struct err *e)
{
	struct http *h = mem_alloc(sizeof(*h));

	if (load(h)) {
		*out = h;
		return 0;
	}
	free(h);
	err_set(e, -ENOENT, EXIT_PREREQUISITE, "cannot load %s, which sonde-push needs", LIBRARY);
	err_fix(e, "install curl's library (on Debian package libcurl4)");
	return -ENOENT;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	h->easy_cleanup(h->easy);
	free(h); /* the library stays: what it has begun in the process cannot be taken back */
}

/* 0 where the reply has had enough of it: libcurl then hangs up. */
static size_t take_body(char *data, size_t size, size_t n, void *reply)
{
	return reply_body(reply, data, size * n) ? size * n : 0;
}

static size_t take_head(char *data, size_t size, size_t n, void *reply)
{
	return reply_head(reply, data, size * n) ? size * n : 0;
}

/* Called at least once a second; not 0 ends the transfer. */
static int on_progress(void *ctx, int64_t down_all, int64_t down, int64_t up_all, int64_t up)
{
	(void)ctx, (void)down_all, (void)down, (void)up_all, (void)up;
	return ending_now();
}

static int authorize(struct http *h, const struct target *t, void **heads, struct err *e)
{
	char secret[SECRET_MOST], line[SECRET_MOST + 80];
	int rc = 0;

	if (*t->token_file) {
		rc = secret_read(t->token_file, t->name, secret, e);
		snprintf(line, sizeof(line), "Authorization: Bearer %s", secret);
		if (!rc)
			*heads = h->slist_append(*heads, line);
	} else if (*t->user) {
		*secret = '\0';
		if (*t->password_file)
			rc = secret_read(t->password_file, t->name, secret, e);
		snprintf(line, sizeof(line), "%s:%s", t->user, secret);
		if (!rc)
			h->easy_setopt(h->easy, OPT_USERPWD, line);
	}
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(line, sizeof(line));
	return rc;
}

static void request(struct http *h, const struct target *t, const char *url, const void *body,
		    size_t len, struct reply *reply)
{
	h->easy_setopt(h->easy, OPT_URL, url);
	h->easy_setopt(h->easy, OPT_NOSIGNAL, 1L);
	h->easy_setopt(h->easy, OPT_PROTOCOLS, (long)(PROTOCOL_HTTP | PROTOCOL_HTTPS));
	h->easy_setopt(h->easy, OPT_HTTP_VERSION, (long)HTTP_1_1);
	h->easy_setopt(h->easy, OPT_FOLLOWLOCATION,
		       0L); /* a secret is for whom the configuration names */
	h->easy_setopt(h->easy, OPT_NOPROGRESS, 0L);
	h->easy_setopt(h->easy, OPT_XFERINFOFUNCTION, on_progress);
	h->easy_setopt(h->easy, OPT_TIMEOUT, (long)t->timeout_s);
	h->easy_setopt(h->easy, OPT_CONNECTTIMEOUT, (long)(t->timeout_s < 10 ? t->timeout_s : 10));
	h->easy_setopt(h->easy, OPT_USERAGENT, "sonde-push");
	h->easy_setopt(h->easy, OPT_POST, 1L);
	h->easy_setopt(h->easy, OPT_POSTFIELDS, body);
	h->easy_setopt(h->easy, OPT_POSTFIELDSIZE_LARGE, (int64_t)len);
	h->easy_setopt(h->easy, OPT_WRITEFUNCTION, take_body);
	h->easy_setopt(h->easy, OPT_WRITEDATA, reply);
	h->easy_setopt(h->easy, OPT_HEADERFUNCTION, take_head);
	h->easy_setopt(h->easy, OPT_HEADERDATA, reply);
	if (*t->ca_file)
		h->easy_setopt(h->easy, OPT_CAINFO, t->ca_file);
}

static int judge(const struct http *h, const struct target *t, int curl, long status,
		 const struct reply *r, uint64_t *rejected, struct err *e)
{
	if (curl == CURL_ABORTED)
		return err_set(
			e, -ECANCELED, EXIT_RUNTIME,
			"%s: %s: no answer before sonde-push ended; the data will be sent again",
			t->name, t->url);
	if (curl && !(curl == CURL_WRITE_ERROR && r->endless))
		return err_set(e, -EAGAIN, EXIT_RUNTIME, "%s: %s: %s", t->name, t->url,
			       h->easy_strerror(curl));
	return reply_judge(r, t, status, rejected, e);
}

static void *heads_of(struct http *h, const struct target *t)
{
	void *heads = h->slist_append(NULL, "Expect:");
	char line[128];

	if (t->type == TARGET_PYROSCOPE) {
		heads = h->slist_append(heads, "Content-Type: application/proto");
		heads = h->slist_append(heads, "Connect-Protocol-Version: 1");
	} else if (!t->plain) {
		heads = h->slist_append(heads, "Content-Encoding: gzip");
	}
	if (t->type == TARGET_OTLP)
		heads = h->slist_append(heads, "Content-Type: application/x-protobuf");
	snprintf(line, sizeof(line), "X-Scope-OrgID: %s", t->tenant);
	return *t->tenant ? h->slist_append(heads, line) : heads;
}

int http_post(struct http *h, const struct target *t, const char *path, const void *body,
	      size_t len, struct http_answer *a, struct err *e)
{
	struct strbuf url cleanup_strbuf = STRBUF_INIT;
	struct reply reply = {.len = 0};
	void *heads = heads_of(h, t);
	long status = 0;
	int rc, curl;

	*a = (struct http_answer){0};
	h->easy_reset(h->easy);
	rc = authorize(h, t, &heads, e);
	if (!rc) {
		strbuf_addf(&url, "%.*s%s",
			    (int)(strlen(t->url) - (t->url[strlen(t->url) - 1] == '/')), t->url,
			    path);
		request(h, t, strbuf_str(&url), body, len, &reply);
		h->easy_setopt(h->easy, OPT_HTTPHEADER, heads);
		curl = h->easy_perform(h->easy);
		h->easy_getinfo(h->easy, INFO_RESPONSE_CODE, &status);
		rc = judge(h, t, curl, status, &reply, &a->rejected, e);
		a->retry_s = reply.retry_s;
	}
	h->slist_free_all(heads);
	return rc;
}
