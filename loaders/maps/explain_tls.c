// SPDX-License-Identifier: Apache-2.0
/* explain_tls: see the header. */
#include "loaders/maps/explain_tls.h"

#include <stdbool.h>
#include <string.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "schema/base/array.h"
#include "schema/image/tls.h"

static const char *const LIBRARIES[] = {"tls", "openssl", "gnutls", "go", "rustls"};

/* Known by what their files are called, and not read. */
static const struct {
	const char *file, *library, *why;
} UNREAD[] = {
	{"libjvm.so", "java", "Java's own TLS is Java code, which has no place for a probe"},
	{"libnss3.so", "nss",
	 "NSS reads files and sockets by the same functions, in clear and inside TLS"},
	{"envoy", "boringssl",
	 "BoringSSL in Envoy does no input and output of its own: which connection a call is for is not known"},
};

static json_t *unread(const struct hostmaps_image *img)
{
	for (size_t i = 0; i < ARRAY_SIZE(UNREAD); i++)
		if (!strcmp(img->name, UNREAD[i].file))
			return json_pack("{s:s, s:s, s:i, s:s}", "library", UNREAD[i].library,
					 "read", "no", "probes", 0, "why", UNREAD[i].why);
	return NULL;
}

json_t *explain_tls(const struct hostmaps_image *img)
{
	const struct image_tls_site *s = NULL;
	size_t n = img->index ? image_tls(img->index, &s) : 0;
	bool blind = false, slow = false;
	const char *library, *why = "";

	if (!n)
		return unread(img);
	for (size_t i = 0; i < n; i++) {
		blind |= s[i].role == IMAGE_TLS_BLIND;
		slow |= s[i].slow &&
			s[i].value[0].place !=
				IMAGE_TLS_NUMBER; /* else it is hit only where nothing was read */
	}
	library = s[0].library < ARRAY_SIZE(LIBRARIES) ? LIBRARIES[s[0].library] : LIBRARIES[0];
	if (blind)
		why = s[0].library == IMAGE_TLS_GO ?
			      "Go before 1.17 passes arguments in memory" :
		      s[0].library == IMAGE_TLS_RUSTLS ?
			      "where rustls has clear text differs from build to build" :
			      "in this build no place for a probe is known";
	return json_pack("{s:s, s:s, s:i, s:s}", "library", library, "read",
			 blind ? "no" :
			 slow  ? "stepped" :
				 "emulated",
			 "probes", blind ? 0 : (int)n, "why", why);
}
