/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvmlread: what NVML tells of each device, as text (gpuparse.h has its form).
 *
 *   1. The driver keeps samples of how busy a device is for some seconds, and tells of a process's
 * use in the second before alone. So nvmlread_sample is called once a second, and sums up: percent
 * times the time since the sample before. Each device, and each sum of it, has a cursor of its own.
 *   2. A call that fails costs its value: what was not told since nvmlread_say said it last is not
 * said. Time in which nothing was told is in no sum.
 *   3. Counters begin at 0 as the program begins.
 *   4. A process is known by its pid for as long as the driver lists it, and said once more after
 * that.
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
