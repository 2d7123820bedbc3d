/* SPDX-License-Identifier: Apache-2.0 */
/* http: see the header. Functions and numbers are those of libcurl's interface (curl_easy_setopt(3)), which its soname 4 keeps. */
#include "export/push/http.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/proto.h"
#include "schema/base/strbuf.h"

#define LIBRARY "libcurl.so.4"
#define SECRET_MOST 4096
#define SAID_MOST 4096
#define RETRY_MOST_S 3600

enum {
	OPT_WRITEDATA = 10001, OPT_URL = 10002, OPT_USERPWD = 10005, OPT_TIMEOUT = 13, OPT_POSTFIELDS = 10015, OPT_USERAGENT = 10018, OPT_HTTPHEADER = 10023,
	OPT_HEADERDATA = 10029, OPT_POST = 47, OPT_CAINFO = 10065, OPT_CONNECTTIMEOUT = 78, OPT_NOSIGNAL = 99, OPT_PROTOCOLS = 181, OPT_POSTFIELDSIZE_LARGE = 30120,
	OPT_WRITEFUNCTION = 20011, OPT_HEADERFUNCTION = 20079, INFO_RESPONSE_CODE = 0x200000 + 2, PROTOCOL_HTTP = 1, PROTOCOL_HTTPS = 2, GLOBAL_ALL = 3
};

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

/* What the receiver said. */
struct said {
	char text[SAID_MOST + 1];
	size_t len, all;
	uint32_t retry_s;
	bool protobuf; /* by its Content-Type */
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
	return h->library && symbol(h, "curl_global_init", &h->global_init) && symbol(h, "curl_easy_init", &h->easy_init) &&
	       symbol(h, "curl_easy_cleanup", &h->easy_cleanup) && symbol(h, "curl_easy_reset", &h->easy_reset) &&
	       symbol(h, "curl_easy_setopt", &h->easy_setopt) && symbol(h, "curl_easy_perform", &h->easy_perform) &&
	       symbol(h, "curl_easy_getinfo", &h->easy_getinfo) && symbol(h, "curl_easy_strerror", &h->easy_strerror) &&
	       symbol(h, "curl_slist_append", &h->slist_append) && symbol(h, "curl_slist_free_all", &h->slist_free_all) &&
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
	err_set(e, -ENOENT, EXIT_PREREQUISITE, "%s cannot be loaded, which sonde-push sends by", LIBRARY);
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

static size_t take_body(char *data, size_t size, size_t n, void *ctx)
{
	struct said *s = ctx;
	size_t room = SAID_MOST - s->len, take = size * n < room ? size * n : room;

	memcpy(s->text + s->len, data, take);
	s->len += take;
	s->text[s->len] = '\0';
	s->all += size * n;
	return size * n;
}

static size_t take_head(char *data, size_t size, size_t n, void *ctx)
{
	static const char retry[] = "Retry-After:", type[] = "Content-Type:", protobuf[] = "application/x-protobuf";
	struct said *s = ctx;
	size_t len = size * n, at = sizeof(retry) - 1;

	if (len > sizeof(type) && !strncasecmp(data, type, sizeof(type) - 1))
		s->protobuf = memmem(data, len, protobuf, sizeof(protobuf) - 1) != NULL;
	if (len <= at || strncasecmp(data, retry, at))
		return len;
	while (at < len && data[at] == ' ')
		at++;
	for (s->retry_s = 0; at < len && data[at] >= '0' && data[at] <= '9' && s->retry_s < RETRY_MOST_S; at++)
		s->retry_s = s->retry_s * 10 + (uint32_t)(data[at] - '0');
	if (s->retry_s > RETRY_MOST_S)
		s->retry_s = RETRY_MOST_S;
	return len;
}

/* The first line of a file, read at each request: it may be changed while this runs. */
static int secret_read(const char *path, const char *target, char secret[SECRET_MOST], struct err *e)
{
	cleanup_file FILE *f = fopen(path, "re");

	*secret = '\0';
	if (!f || !fgets(secret, SECRET_MOST, f))
		return err_set(e, -EACCES, EXIT_PERMISSION, "%s: cannot read the secret in %s: %s", target, path, f ? "it is empty" : strerror(errno));
	secret[strcspn(secret, "\r\n")] = '\0';
	return 0;
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

static void request(struct http *h, const struct target *t, const char *url, const void *body, size_t len, struct said *said)
{
	h->easy_setopt(h->easy, OPT_URL, url);
	h->easy_setopt(h->easy, OPT_NOSIGNAL, 1L);
	h->easy_setopt(h->easy, OPT_PROTOCOLS, (long)(PROTOCOL_HTTP | PROTOCOL_HTTPS));
	h->easy_setopt(h->easy, OPT_TIMEOUT, (long)t->timeout_s);
	h->easy_setopt(h->easy, OPT_CONNECTTIMEOUT, (long)(t->timeout_s < 10 ? t->timeout_s : 10));
	h->easy_setopt(h->easy, OPT_USERAGENT, "sonde-push");
	h->easy_setopt(h->easy, OPT_POST, 1L);
	h->easy_setopt(h->easy, OPT_POSTFIELDS, body);
	h->easy_setopt(h->easy, OPT_POSTFIELDSIZE_LARGE, (int64_t)len);
	h->easy_setopt(h->easy, OPT_WRITEFUNCTION, take_body);
	h->easy_setopt(h->easy, OPT_WRITEDATA, said);
	h->easy_setopt(h->easy, OPT_HEADERFUNCTION, take_head);
	h->easy_setopt(h->easy, OPT_HEADERDATA, said);
	if (*t->ca_file)
		h->easy_setopt(h->easy, OPT_CAINFO, t->ca_file);
}

/* By Connect's codes of errors; of gateways and the like nothing is final. */
static bool is_final(const struct target *t, long status, const struct said *said)
{
	if (t->type == TARGET_OTLP)
		return status == 400 && said->protobuf;
	return t->type == TARGET_PYROSCOPE && status == 400 &&
	       (strstr(said->text, "\"invalid_argument\"") || strstr(said->text, "\"out_of_range\""));
}

/* Export...ServiceResponse: partial_success (1) has how many were rejected (1). false: it is none. */
static bool otlp_taken(const struct said *said, uint64_t *rejected)
{
	struct cursor c = cursor_init(said->text, said->len);
	struct proto_field partial, f;

	while (said->all <= SAID_MOST && proto_next(&c, &partial)) {
		struct cursor in = partial.type == 2 ? cursor_init(partial.data, partial.len) : cursor_init("", 0);

		while (partial.number == 1 && proto_next(&in, &f))
			if (f.number == 1 && f.type == 0)
				*rejected = f.value;
	}
	return !said->all || (said->protobuf && !c.bad && said->all <= SAID_MOST);
}

static int judge(const struct http *h, const struct target *t, int curl, long status, const struct said *said, struct http_answer *a, struct err *e)
{
	unsigned code;

	if (curl)
		return err_set(e, -EAGAIN, EXIT_RUNTIME, "%s: %s: %s", t->name, t->url, h->easy_strerror(curl));
	if (status == 200 && (t->type == TARGET_OTLP ? otlp_taken(said, &a->rejected) : !said->all))
		return 0;
	if (is_final(t, status, said))
		return err_set(e, -EBADMSG, EXIT_RUNTIME, "%s: %s will not have it: it answered %ld, which is final", t->name, t->url, status);
	if (t->type == TARGET_CLICKHOUSE && sscanf(said->text, "Code: %9u.", &code) == 1) /* its exception. The rest is not shown: a receiver may say back what it was sent */
		return err_set(e, -EAGAIN, EXIT_RUNTIME, "%s: %s answered %ld, ClickHouse's code %u", t->name, t->url, status, code);
	return err_set(e, -EAGAIN, EXIT_RUNTIME, "%s: %s answered %ld%s", t->name, t->url, status, status == 200 ? " and a text, as it would not" : "");
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

int http_post(struct http *h, const struct target *t, const char *path, const void *body, size_t len, struct http_answer *a, struct err *e)
{
	struct strbuf url cleanup_strbuf = STRBUF_INIT;
	struct said said = {.len = 0};
	void *heads = heads_of(h, t);
	long status = 0;
	int rc, curl;

	*a = (struct http_answer){0};
	h->easy_reset(h->easy);
	rc = authorize(h, t, &heads, e);
	if (!rc) {
		strbuf_addf(&url, "%.*s%s", (int)(strlen(t->url) - (t->url[strlen(t->url) - 1] == '/')), t->url, path);
		request(h, t, strbuf_str(&url), body, len, &said);
		h->easy_setopt(h->easy, OPT_HTTPHEADER, heads);
		curl = h->easy_perform(h->easy);
		h->easy_getinfo(h->easy, INFO_RESPONSE_CODE, &status);
		rc = judge(h, t, curl, status, &said, a, e);
		a->retry_s = said.retry_s;
	}
	h->slist_free_all(heads);
	return rc;
}
