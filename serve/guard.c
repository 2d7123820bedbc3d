/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/guard.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_ 255

/* The name in "name", "name:80", "1.2.3.4:80", "[::1]:80"; false for anything else. */
static bool host_name(const char *host, char name[NAME_MAX_ + 1], bool *v6)
{
	const char *end;
	size_t len;

	*v6 = *host == '[';
	if (*v6)
		host++;
	end = *v6 ? strchr(host, ']') : host + strcspn(host, ":");
	if (!end || end == host)
		return false;
	len = (size_t)(end - host);
	if (*v6)
		end++;
	if (len > NAME_MAX_ ||
	    (*end && (*end != ':' || !end[1] || strspn(end + 1, "0123456789") != strlen(end + 1) ||
		      strlen(end + 1) > 5)))
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	return true;
}

static bool host_is_known(const struct guard *g, const char *host)
{
	unsigned char number[sizeof(struct in6_addr)];
	char name[NAME_MAX_ + 1];
	size_t own = strlen(g->own);
	bool v6;

	if (!host_name(host, name, &v6))
		return false;
	if (v6)
		return inet_pton(AF_INET6, name, number) == 1;
	if (inet_pton(AF_INET, name, number) == 1 || !strcasecmp(name, "localhost"))
		return true;
	if (own && !strncasecmp(name, g->own, own) &&
	    (!name[own] || !strcasecmp(name + own, ".local")))
		return true;
	for (size_t i = 0; i < g->n_hosts; i++)
		if (!strcasecmp(name, g->hosts[i]))
			return true;
	return false;
}

static bool origin_is_own(const char *origin, const char *host)
{
	const char *rest = !strncmp(origin, "http://", 7)  ? origin + 7 :
			   !strncmp(origin, "https://", 8) ? origin + 8 :
							     NULL;

	return rest && host && !strcasecmp(rest, host);
}

bool guard_token_is(const struct guard *g, const char *given, size_t len)
{
	size_t want = strlen(g->token);
	unsigned char differ = len != want;

	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)(given[i] ^ g->token[i < want ? i : 0]);
	return !differ;
}

bool guard_token_fits(const char *token)
{
	size_t len = strlen(token);

	return len >= 16 && len <= 200 &&
	       strspn(token,
		      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=") ==
		       len;
}

/* a=b; sonde=TOKEN; c=d */
static bool cookie_has_token(const struct guard *g, const char *cookie)
{
	const size_t name = strlen(GUARD_COOKIE);

	while (*cookie) {
		size_t len;

		cookie += strspn(cookie, " ;");
		len = strcspn(cookie, ";");
		if (!strncmp(cookie, GUARD_COOKIE "=", name + 1) &&
		    guard_token_is(g, cookie + name + 1, len - name - 1))
			return true;
		cookie += len;
	}
	return false;
}

static bool has_token(const struct guard *g, const struct guard_head *head)
{
	if (head->authorization && !strncasecmp(head->authorization, "Bearer ", 7) &&
	    guard_token_is(g, head->authorization + 7, strlen(head->authorization + 7)))
		return true;
	return head->cookie && cookie_has_token(g, head->cookie);
}

enum guard_answer guard_ask(const struct guard *g, const struct guard_head *head, bool page,
			    bool check_host)
{
	const char *site = head->site;
	bool elsewhere = site && strcasecmp(site, "same-origin") && strcasecmp(site, "none");

	if (check_host && !head->host)
		return GUARD_NO_HOST;
	if (check_host && !host_is_known(g, head->host))
		return GUARD_HOST;
	if (head->origin && !origin_is_own(head->origin, head->host))
		return GUARD_ORIGIN;
	if (elsewhere && !(page && head->mode && !strcasecmp(head->mode, "navigate")))
		return GUARD_ORIGIN;
	return !g->token || has_token(g, head) ? GUARD_WELCOME : GUARD_TOKEN;
}
