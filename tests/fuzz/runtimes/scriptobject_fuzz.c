/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scriptobject_fuzz: any bytes as a record of the ring `names`; the last one chooses the runtime.
 * covers: loaders/lib/runtimes/scriptobject.c loaders/lib/runtimes/phpcode.c
 * loaders/lib/runtimes/perl/perlcode.c loaders/lib/runtimes/rubycode.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/scriptobject.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct script_names record;
	static const uint32_t kinds[] = {RUNTIME_PYTHON, RUNTIME_PHP, RUNTIME_RUBY, RUNTIME_PERL};
	const size_t least = offsetof(struct script_names, data);
	struct scriptobject o;

	if (len > sizeof(record))
		len = sizeof(record);
	memset(&record, 0, sizeof(record));
	memcpy(&record, data, len);
	record.id |= 1;
	record.layout.kind = kinds[len ? data[len - 1] % 4 : 0];
	if (scriptobject_read(&record, len < least ? least : len, &o))
		abort();
	for (uint32_t i = 0; i < 64; i += 7)
		scriptobject_line(&o, i);
	if (scriptobject_function(&o) &&
	    strlen(scriptobject_function(&o)) > 4 * PYCODE_TEXT_MAX + 3)
		abort();
	scriptobject_release(&o);
	return 0;
}
