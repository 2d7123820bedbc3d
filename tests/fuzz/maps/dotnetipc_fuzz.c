/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotnetipc_fuzz: any bytes as what a diagnostic socket answers, as they come, and as the name of
 * one.
 *
 * covers: loaders/maps/dotnet/dotnetipc.c
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/maps/dotnet/dotnetipc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char name[80] = "";
	uint32_t why = 0;
	int before = 0;

	for (size_t n = 0; n <= len && n <= DOTNETIPC_ANSWER_MAX; n++) {
		uint8_t *bytes = malloc(n ? n : 1);
		int rc;

		memcpy(bytes, data, n);
		rc = dotnetipc_answer(bytes, n, &why);
		free(bytes);
		if (rc != 1 && rc != 0 && rc != -EPROTO && rc != -EREMOTEIO)
			abort();
		if (before && rc != before) /* more bytes change no answer */
			abort();
		before = rc;
	}
	snprintf(name, sizeof(name), "dotnet-diagnostic-7-%.*s", (int)(len < 40 ? len : 40),
		 (const char *)data);
	if (dotnetipc_is_socket(name, 7) &&
	    strspn(name + 20, "0123456789") + 7 != strlen(name + 20))
		abort();
	return 0;
}
