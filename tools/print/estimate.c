/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/print/estimate.h"

#include <math.h>
#include <stdio.h>

uint64_t estimate_error(double variance)
{
	return variance > 0 && variance < 1e36 ? (uint64_t)llround(sqrt(variance)) : 0;
}

const char *estimate_text(uint64_t number, double variance, char *buf, size_t size)
{
	double percent = number && variance > 0 ? 100 * sqrt(variance) / (double)number : 0;

	buf[0] = '\0';
	if (variance > 0)
		snprintf(buf, size, percent < 0.95 ? "\u00b1%.1f %%" : "\u00b1%.0f %%",
			 percent < 0.1 ? 0.1 :
			 percent > 999 ? 999 :
					 percent);
	return buf;
}
