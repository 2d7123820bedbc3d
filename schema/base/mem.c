/* SPDX-License-Identifier: Apache-2.0 */
/* mem: allocation that does not fail. */
#include "schema/base/mem.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/log.h"

static void *mem_check(void *p)
{
	if (!p) {
		log_error("out of memory");
		abort();
	}
	return p;
}

void *mem_alloc(size_t size)
{
	return mem_check(calloc(1, size ? size : 1));
}

void *mem_array(size_t n, size_t size)
{
	return mem_check(calloc(n ? n : 1, size ? size : 1));
}

void *mem_realloc(void *p, size_t size)
{
	return mem_check(realloc(p, size ? size : 1));
}

char *mem_strdup(const char *s)
{
	return mem_check(strdup(s));
}

char *mem_strndup(const char *s, size_t n)
{
	return mem_check(strndup(s, n));
}
