/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/dotnet/dotnetipc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAGIC   "DOTNET_IPC_V1" /* with its NUL */
#define HEAD    20
#define PROCESS 4 /* command set */
#define SERVER  255
#define BEGIN   5
#define END     6
#define WELL    0
#define REFUSED 255
#define JITDUMP 2

size_t dotnetipc_request(bool begin, uint8_t out[DOTNETIPC_REQUEST_MAX])
{
	const uint8_t size = begin ? HEAD + 4 : HEAD;

	memset(out, 0, DOTNETIPC_REQUEST_MAX);
	memcpy(out, MAGIC, sizeof(MAGIC));
	out[14] = size;
	out[16] = PROCESS;
	out[17] = begin ? BEGIN : END;
	out[HEAD] = begin ? JITDUMP : 0;
	return size;
}

int dotnetipc_answer(const uint8_t *bytes, size_t len, uint32_t *why)
{
	*why = 0;
	if (memcmp(bytes, MAGIC, len < sizeof(MAGIC) ? len : sizeof(MAGIC)) != 0)
		return -EPROTO;
	if (len < HEAD)
		return 0;
	if (bytes[16] != SERVER || (bytes[14] | bytes[15] << 8) < HEAD)
		return -EPROTO;
	if (bytes[17] == WELL)
		return 1;
	if (bytes[17] != REFUSED)
		return -EPROTO;
	if ((bytes[14] | bytes[15] << 8) < HEAD + 4)
		return -EREMOTEIO;
	if (len < HEAD + 4)
		return 0;
	*why = (uint32_t)bytes[HEAD] | (uint32_t)bytes[HEAD + 1] << 8 |
	       (uint32_t)bytes[HEAD + 2] << 16 | (uint32_t)bytes[HEAD + 3] << 24;
	return -EREMOTEIO;
}

bool dotnetipc_is_socket(const char *name, uint32_t nspid)
{
	char head[48];
	const size_t n = (size_t)snprintf(head, sizeof(head), "dotnet-diagnostic-%u-", nspid),
		     len = strlen(name), end = strlen("-socket");

	return !strncmp(name, head, n) && len > n + end && !strcmp(name + len - end, "-socket") &&
	       strspn(name + n, "0123456789") == len - n - end;
}
