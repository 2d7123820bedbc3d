/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_hosts_fuzz: any bytes as /etc/hosts: addresses have the form that inet_ntop writes and belong
 * to another host, names have no blank.
 *
 * covers: loaders/net/hostsfile.c
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/net/hostsfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void each(void *ctx, const char *address, const char *name)
{
	uint8_t at[16];
	char again[64];
	int family = strchr(address, ':') ? AF_INET6 : AF_INET;

	(void)ctx;
	if (inet_pton(family, address, at) != 1 ||
	    strcmp(inet_ntop(family, at, again, sizeof(again)), address) ||
	    !strncmp(address, "127.", 4))
		abort();
	if (!*name || strlen(name) >= HOSTSFILE_NAME || strpbrk(name, " \t\r\n#"))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	hostsfile_parse((const char *)data, len, each, NULL);
	return 0;
}
