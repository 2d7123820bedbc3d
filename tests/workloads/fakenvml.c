/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fakenvml: a libnvidia-ml.so.1 with two devices and known readings. Built four times: KIND 1
 * answers everything; 2 fails half of its calls; 3 is old: it has the former names and lacks later
 * functions; 4 hangs when it is asked for memory a second time.
 *
 * Device 0 is half busy, device 1 a quarter; energy is that of 100 W and of 50 W since the library
 * was loaded. FAKE_NVML="DEVICE PID MIB PERCENT, ..." gives its processes. It is written from the
 * same documentation as loaders/gpu/nvmlapi.h, without including that header.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N             2
#define OK            0
#define NOT_SUPPORTED 3
#define UNKNOWN       999
#define MIB           (1ull << 20)
#define EXPORT        __attribute__((visibility("default")))

static int devices[N];
static unsigned long long begun_us;

static unsigned long long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_nsec / 1000;
}

static int of(const void *handle)
{
	return (int)((const int *)handle - devices);
}

static int fails(void)
{
	static unsigned int x = 1;

	x = x * 1103515245 + 12345;
	return KIND == 2 && (x >> 16 & 1);
}

#define ANSWER(statement)               \
	do {                            \
		if (fails())            \
			return UNKNOWN; \
		statement;              \
		return OK;              \
	} while (0)

static int init(void)
{
	begun_us = now_us();
	return OK;
}

static int count(unsigned int *n)
{
	*n = N;
	return OK;
}

static int handle(unsigned int i, void **out)
{
	if (i >= N)
		return 2;
	*out = &devices[i];
	return OK;
}

#if KIND == 3
EXPORT int nvmlInit(void)
{
	return init();
}
EXPORT int nvmlDeviceGetCount(unsigned int *n)
{
	return count(n);
}
EXPORT int nvmlDeviceGetHandleByIndex(unsigned int i, void **out)
{
	return handle(i, out);
}
#else
EXPORT int nvmlInit_v2(void)
{
	return init();
}
EXPORT int nvmlDeviceGetCount_v2(unsigned int *n)
{
	return count(n);
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **out)
{
	return handle(i, out);
}
#endif

EXPORT const char *nvmlErrorString(int rc)
{
	return rc ? "an error" : "no error";
}
EXPORT int nvmlSystemGetDriverVersion(char *out, unsigned int size)
{
	snprintf(out, size, "535.104.05");
	return OK;
}
EXPORT int nvmlSystemGetNVMLVersion(char *out, unsigned int size)
{
	snprintf(out, size, "12.535.104.05");
	return OK;
}
EXPORT int nvmlDeviceGetUUID(void *d, char *out, unsigned int size)
{
	snprintf(out, size, "GPU-fake-%d", of(d));
	return OK;
}
EXPORT int nvmlDeviceGetName(void *d, char *out, unsigned int size)
{
	snprintf(out, size, "Fake %d", of(d));
	return OK;
}

struct memory {
	unsigned long long total, free, used;
};
EXPORT int nvmlDeviceGetMemoryInfo(void *d, struct memory *m)
{
	static int asked;

	if (KIND == 4 && ++asked > N)
		for (;;)
			pause();
	ANSWER(*m = ((struct memory){(16384ull << of(d)) * MIB, 0, (4096ull << of(d)) * MIB}));
}

#if KIND != 3
struct memory2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};
EXPORT int nvmlDeviceGetMemoryInfo_v2(void *d, struct memory2 *m)
{
	struct memory all = {0};
	int rc = m->version == (sizeof(*m) | 2u << 24) ? nvmlDeviceGetMemoryInfo(d, &all) : 25;

	if (rc == OK)
		*m = (struct memory2){m->version, all.total, 400 * MIB, 0, all.used - 400 * MIB};
	return rc;
}
#endif

struct rates {
	unsigned int gpu, memory;
};
EXPORT int nvmlDeviceGetUtilizationRates(void *d, struct rates *r)
{
	ANSWER(*r = ((struct rates){50u >> of(d), 20u >> of(d)}));
}
EXPORT int nvmlDeviceGetPowerUsage(void *d, unsigned int *mw)
{
	ANSWER(*mw = 100000u >> of(d));
}
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned int *mw)
{
	(void)d;
	ANSWER(*mw = 300000);
}
EXPORT int nvmlDeviceGetTemperature(void *d, int sensor, unsigned int *c)
{
	(void)sensor;
	ANSWER(*c = 60u + (unsigned int)of(d));
}
EXPORT int nvmlDeviceGetTemperatureThreshold(void *d, int kind, unsigned int *c)
{
	(void)d;
	ANSWER(*c = kind == 1 ? 90 : 95);
}
EXPORT int nvmlDeviceGetClockInfo(void *d, int kind, unsigned int *mhz)
{
	(void)d;
	ANSWER(*mhz = kind == 2 ? 5000 : 1500);
}
EXPORT int nvmlDeviceGetMaxClockInfo(void *d, int kind, unsigned int *mhz)
{
	(void)d;
	(void)kind;
	ANSWER(*mhz = 1980);
}
EXPORT int nvmlDeviceGetFanSpeed(void *d, unsigned int *percent)
{
	(void)percent;
	return of(d) ? NOT_SUPPORTED : (*percent = 30, OK);
}
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *r)
{
	ANSWER(*r = of(d) ? 0x40 | 0x4 : 0);
}

/* Of the processes of a device: how many, each with its numbers. */
static unsigned int processes(const void *d, unsigned int max,
			      void (*put)(void *to, unsigned int i, unsigned int pid,
					  unsigned long long mib, unsigned int percent),
			      void *to)
{
	const char *at = getenv("FAKE_NVML");
	unsigned int device, pid, percent, n = 0;
	unsigned long long mib;

	for (; at && sscanf(at, "%u %u %llu %u", &device, &pid, &mib, &percent) == 4;
	     at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if ((int)device == of(d) && n < max)
			put(to, n++, pid, mib, percent);
	return n;
}

struct process_v1 {
	unsigned int pid;
	unsigned long long memory;
};
struct process {
	unsigned int pid;
	unsigned long long memory;
	unsigned int gpu, compute;
};

static __attribute__((unused)) void put_v1(void *to, unsigned int i, unsigned int pid,
					   unsigned long long mib, unsigned int percent)
{
	(void)percent;
	((struct process_v1 *)to)[i] = (struct process_v1){pid, mib * MIB};
}

static __attribute__((unused)) void put(void *to, unsigned int i, unsigned int pid,
					unsigned long long mib, unsigned int percent)
{
	(void)percent;
	((struct process *)to)[i] = (struct process){pid, mib * MIB, ~0u, ~0u};
}

#if KIND == 3
EXPORT int nvmlDeviceGetComputeRunningProcesses(void *d, unsigned int *n, struct process_v1 *out)
{
	*n = processes(d, *n, put_v1, out);
	return OK;
}
#else
struct sample {
	unsigned long long us;
	union {
		unsigned int ui;
		double d;
	} value;
};
struct use {
	unsigned int pid;
	unsigned long long us;
	unsigned int sm, memory, enc, dec;
};

static void put_use(void *to, unsigned int i, unsigned int pid, unsigned long long mib,
		    unsigned int percent)
{
	(void)mib;
	((struct use *)to)[i] = (struct use){pid, now_us(), percent, percent / 2, 0, 0};
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned int *n, struct process *out)
{
	ANSWER(*n = processes(d, *n, put, out));
}
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void *d, unsigned int *n, struct process *out)
{
	(void)d;
	(void)out;
	ANSWER(*n = 0);
}
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj)
{
	ANSWER(*mj = 7000000 + (now_us() - begun_us) / 10 / (1u << of(d)));
}
EXPORT int nvmlDeviceGetTotalEccErrors(void *d, int kind, int since, unsigned long long *n)
{
	(void)d;
	(void)kind;
	(void)since;
	ANSWER(*n = 3);
}

EXPORT int nvmlDeviceGetEncoderUtilization(void *d, unsigned int *percent, unsigned int *us)
{
	*us = 167000;
	ANSWER(*percent = of(d) ? 0 : 10);
}
EXPORT int nvmlDeviceGetDecoderUtilization(void *d, unsigned int *percent, unsigned int *us)
{
	(void)d;
	*us = 167000;
	ANSWER(*percent = 0);
}
EXPORT int nvmlDeviceGetMaxMigDeviceCount(void *d, unsigned int *n)
{
	(void)d;
	ANSWER(*n = 0);
}
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void *d, unsigned int i, void **out)
{
	(void)d;
	(void)i;
	(void)out;
	return NOT_SUPPORTED;
}
struct violation {
	unsigned long long us, ns;
};
EXPORT int nvmlDeviceGetViolationStatus(void *d, int policy, struct violation *v)
{
	ANSWER(*v = ((struct violation){now_us(), policy == 1 && of(d) ?
							  5000000000 + (now_us() - begun_us) * 500 :
							  77}));
}

/* Each sixth of a second one; as the driver does, those alone that came after `last`. */
EXPORT int nvmlDeviceGetSamples(void *d, int kind, unsigned long long last, int *type,
				unsigned int *n, struct sample *out)
{
	unsigned long long now = now_us();
	unsigned int max = *n;

	if (fails())
		return UNKNOWN;
	*type = 1;
	*n = 0;
	for (unsigned long long at = now - 10000000; at <= now && *n < max; at += 166667)
		if (at > last)
			out[(*n)++] = (struct sample){at, {.ui = (kind == 1 ? 50u : 20u) >> of(d)}};
	return *n ? OK : 6;
}

EXPORT int nvmlDeviceGetProcessUtilization(void *d, struct use *out, unsigned int *n,
					   unsigned long long last)
{
	(void)last;
	if (fails())
		return UNKNOWN;
	*n = processes(d, *n, put_use, out);
	return *n ? OK : 6;
}
#endif
