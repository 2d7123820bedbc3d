/* SPDX-License-Identifier: Apache-2.0 */
/* The data between the marks is made by the Makefile from serve/page and tools/page. */
#include "serve/asset.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"

#define BLOB(name, file)                                                     \
	extern const char name##_begin[], name##_end[];                      \
	__asm__(".pushsection .rodata\n"                                     \
		".global " #name "_begin, " #name "_end\n" #name "_begin:\n" \
		".incbin \"" file "\"\n" #name "_end:\n"                     \
		".byte 0\n"                                                  \
		".popsection\n")

BLOB(serve_html, SERVE_GEN "/index.html");
BLOB(serve_html_gz, SERVE_GEN "/index.html.gz");
BLOB(serve_css, SERVE_GEN "/app.css");
BLOB(serve_css_gz, SERVE_GEN "/app.css.gz");
BLOB(serve_js, SERVE_GEN "/app.js");
BLOB(serve_js_gz, SERVE_GEN "/app.js.gz");

/* clang-format off */
static struct asset assets[] = {
	{.path = "/", .type = "text/html; charset=utf-8", .plain = serve_html_begin, .packed = serve_html_gz_begin},
	{.path = "/app.css", .type = "text/css; charset=utf-8", .plain = serve_css_begin, .packed = serve_css_gz_begin},
	{.path = "/app.js", .type = "text/javascript; charset=utf-8", .plain = serve_js_begin, .packed = serve_js_gz_begin},
};
/* clang-format on */
static const char *const ENDS[][2] = {{serve_html_end, serve_html_gz_end},
				      {serve_css_end, serve_css_gz_end},
				      {serve_js_end, serve_js_gz_end}};

static void measure(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(assets); i++) {
		struct asset *a = &assets[i];

		a->plain_len = (size_t)(ENDS[i][0] - a->plain);
		a->packed_len = (size_t)(ENDS[i][1] - a->packed);
		snprintf(a->tag, sizeof(a->tag), "\"%016llx\"",
			 (unsigned long long)hash_bytes(0, a->plain, a->plain_len));
	}
}

const struct asset *asset_find(const char *path)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, measure);
	for (size_t i = 0; i < ARRAY_SIZE(assets); i++)
		if (!strcmp(assets[i].path, path))
			return &assets[i];
	return NULL;
}
