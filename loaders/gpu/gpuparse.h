/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuparse: parses the output of sonde-nvml. Lines, each a word, a blank, and the rest of it:
 *
 *   greeting   driver VERSION, library VERSION, devices N, missing NAMES, and at its end: ready.
 *              Or error TEXT, fix TEXT.
 *   device     device UUID, gpu NUMBER, name MODEL;
 *              COLUMN N for each column of gpu_row that the library reported (schema/facts/gpu.h);
 *              process PID NTH MEM SM MEMORY ENCODER DECODER for each process, "-": unknown;
 *              and at its end: done.
 *   end        after all devices.
 *
 * Unknown lines are skipped; an invalid number counts as unknown.
 */
#ifndef SONDE_GPU_GPUPARSE_H
#define SONDE_GPU_GPUPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/facts/fact.h"

#define GPUPARSE_PROCESSES 1024
#define GPUPARSE_TEXT      100

enum gpuparse_what {
	GPUPARSE_MORE /* it is not whole yet */,
	GPUPARSE_READY,
	GPUPARSE_ERROR,
	GPUPARSE_DEVICE,
	GPUPARSE_END
};
/* The first block of the text, and how long it is. */
enum gpuparse_what gpuparse_next(const char *text, size_t len, size_t *block);

struct gpuparse_hello {
	char driver[GPUPARSE_TEXT], library[GPUPARSE_TEXT], missing[600];
	uint32_t devices;
};
void gpuparse_hello(const char *text, size_t len, struct gpuparse_hello *out);
/* -EIO, EXIT_PREREQUISITE */
int gpuparse_error(const char *text, size_t len, struct err *e);

struct gpuparse_process {
	uint32_t pid, nth;
	struct fact_row row; /* counters and gauges of gpu_process_row */
};
struct gpuparse_device {
	char uuid[GPUPARSE_TEXT], number[GPUPARSE_TEXT], name[GPUPARSE_TEXT];
	struct fact_row row; /* the same of gpu_row */
	struct gpuparse_process processes[GPUPARSE_PROCESSES];
	size_t n;
};
/* False: it has no UUID. */
bool gpuparse_device(const char *text, size_t len, struct gpuparse_device *out);

#endif
