/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/waitstack.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "loaders/lib/host/names/kallsyms.h"
#include "loaders/lib/host/names/naming.h"
#include "probes/disk.h"
#include "schema/base/array.h"

static bool begins_as(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(name, list[i], strlen(list[i])))
			return true;
	return false;
}

static bool is_scheduler(const char *name)
{
	static const char *const words[] = {"__schedule", "schedule", "io_schedule"};

	return begins_as(name, words, ARRAY_SIZE(words));
}

static bool is_entry(const char *name)
{
	static const char *const words[] = {"do_syscall_64", "x64_sys_call", "entry_SYSCALL_",
					    "do_int80",      "asm_",         "ret_from_fork",
					    "kthread"};

	return begins_as(name, words, ARRAY_SIZE(words));
}

void waitstack_join(char (*names)[WAITSTACK_NAME], size_t n, char out[WAITSTACK_TEXT])
{
	size_t from = 0, len = 0;

	*out = 0;
	while (from < n && is_scheduler(names[from]))
		from++;
	while (n > from && is_entry(names[n - 1]))
		n--;
	for (size_t i = from; i < n; i++) {
		size_t size = strlen(names[i]);

		if (len + size + 2 > WAITSTACK_TEXT)
			return;
		len += (size_t)sprintf(out + len, "%s%s", len ? " " : "", names[i]);
	}
}

void waitstack_text(struct family_host *h, const __u64 *addresses, size_t n,
		    char out[WAITSTACK_TEXT])
{
	char names[DISK_STACK][WAITSTACK_NAME];
	struct kallsyms_symbol symbol;
	struct kallsyms *k;
	size_t found = 0;

	*out = 0;
	if (!n)
		return;
	naming_kernel_begin(h->naming);
	k = naming_kallsyms(h->naming);
	for (size_t i = 0; k && i < n && i < DISK_STACK; i++)
		if (kallsyms_find(k, addresses[i] - 1, &symbol))
			snprintf(names[found++], WAITSTACK_NAME, "%s", symbol.name);
	waitstack_join(names, found, out);
}
