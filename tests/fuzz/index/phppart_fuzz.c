/* SPDX-License-Identifier: Apache-2.0 */
/* phppart_fuzz: any bytes as a PHP engine's constants. */
#include <stdint.h>
#include <stdlib.h>

#include "loaders/index/runtimes/phppart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct php_layout l;
	uint32_t interface = phppart_interface(data, len);

	if (interface > 99999999 || (phppart_layout(interface, &l) && !l.version))
		abort();
	return 0;
}
