/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvmlread: what NVML reports of each device, as text (its form: gpuparse.h).
 *
 *   1. The driver keeps samples of how busy a device is for some seconds, and reports a process's
 *      use of the previous second only. So nvmlread_sample is called once a second, and adds up:
 *      percent times the time since the previous sample. Each device, and each of its sums, has its
 *      own cursor.
 *   2. If a call fails, its value is left out: only values read since the last nvmlread_say are
 *      written. Time without values is in no sum.
 *   3. Counters begin at 0 as the program begins.
 *   4. A process is known by its pid for as long as the driver lists it, and written a last time
 *      after that.
 */
#ifndef SONDE_GPU_NVMLREAD_H
#define SONDE_GPU_NVMLREAD_H

#include <stdint.h>

#include "loaders/gpu/nvmlapi.h"

struct nvmlread;

struct nvmlread *nvmlread_new(const struct nvmlapi *api);
void nvmlread_free(struct nvmlread *r);
/* What there is now: devices, and instances of them. How many. */
unsigned int nvmlread_look(struct nvmlread *r);
void nvmlread_sample(struct nvmlread *r, int64_t now_ns);
/* A block for each device, to stdout, each as soon as it is read. */
void nvmlread_say(struct nvmlread *r, int64_t now_ns);

#endif
