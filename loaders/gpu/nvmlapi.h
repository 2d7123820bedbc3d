/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvmlapi: what is used of NVIDIA's management library, declared here after its public
 * documentation (NVML API reference, docs.nvidia.com/deploy/nvml-api), and found at run time: no
 * header and no library of NVIDIA's is needed to build.
 *
 * A function that the library does not have (an older driver) is NULL: it costs what it would tell.
 * Those that have had other arguments in older libraries are taken by the name of the version that
 * is declared here.
 */
#ifndef SONDE_GPU_NVMLAPI_H
#define SONDE_GPU_NVMLAPI_H

#include <stddef.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"

/* Results; all others are failures too. */
enum {
	NVML_OK = 0,
	NVML_NOT_SUPPORTED = 3,
	NVML_NOT_FOUND = 6,
	NVML_TOO_SMALL = 7,
	NVML_LOST = 15
};

enum { NVML_SAMPLES_GPU = 1, NVML_SAMPLES_MEMORY = 2 };
enum {
	NVML_VALUE_DOUBLE = 0,
	NVML_VALUE_UINT = 1,
	NVML_VALUE_ULONG = 2,
	NVML_VALUE_ULL = 3,
	NVML_VALUE_LL = 4,
	NVML_VALUE_INT = 5
};
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum { NVML_LIMIT_SLOWDOWN = 1 }; /* of temperature */
enum { NVML_POLICY_POWER = 0, NVML_POLICY_THERMAL = 1 };
enum { NVML_UNCORRECTED = 1, NVML_SINCE_LOAD = 0 };
#define NVML_NO_VALUE (~0ull)
#define NVML_MEMORY2  (sizeof(struct nvml_memory2) | 2u << 24)

typedef void *nvml_device;

struct nvml_memory {
	unsigned long long total, free, used; /* bytes */
};
struct nvml_memory2 {
	unsigned int version;                           /* NVML_MEMORY2 */
	unsigned long long total, reserved, free, used; /* bytes; reserved: what the driver keeps
							   for itself, in used of nvml_memory */
};
struct nvml_rates {
	unsigned int gpu, memory; /* percent */
};
struct nvml_sample {
	unsigned long long us; /* when */
	union {
		double real;
		unsigned int uint;
		unsigned long ulong;
		unsigned long long ull;
		long long ll;
		int sint;
	} value;
};
struct nvml_violation {
	unsigned long long reference_us, violation_ns;
};
struct nvml_process { /* of ..._v2 and _v3 */
	unsigned int pid;
	unsigned long long memory; /* bytes, or NVML_NO_VALUE */
	unsigned int gpu_instance, compute_instance;
};
struct nvml_process_v1 {
	unsigned int pid;
	unsigned long long memory;
};
struct nvml_use {
	unsigned int pid;
	unsigned long long us;                     /* when */
	unsigned int sm, memory, encoder, decoder; /* percent */
};

_Static_assert(sizeof(struct nvml_process) == 24 && sizeof(struct nvml_process_v1) == 16 &&
		       sizeof(struct nvml_use) == 32 && sizeof(struct nvml_sample) == 16 &&
		       sizeof(struct nvml_memory2) == 40,
	       "as the library has them on 64 bits");

/* X(MEMBER, HOW, ARGUMENTS, NAME, NAME OF BEFORE OR NULL) */
enum {
	NVML_MORE,
	NVML_NEEDED /* nothing works without it */,
	NVML_FALLBACK /* optional */
};
#define NVML_FUNCTIONS(X)                                                                          \
	X(init, NVML_NEEDED, (void), "nvmlInit_v2", "nvmlInit")                                    \
	X(count, NVML_NEEDED, (unsigned int *), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")     \
	X(handle, NVML_NEEDED, (unsigned int, nvml_device *), "nvmlDeviceGetHandleByIndex_v2",     \
	  "nvmlDeviceGetHandleByIndex")                                                            \
	X(uuid, NVML_NEEDED, (nvml_device, char *, unsigned int), "nvmlDeviceGetUUID", NULL)       \
	X(name, NVML_MORE, (nvml_device, char *, unsigned int), "nvmlDeviceGetName", NULL)         \
	X(driver, NVML_MORE, (char *, unsigned int), "nvmlSystemGetDriverVersion", NULL)           \
	X(version, NVML_MORE, (char *, unsigned int), "nvmlSystemGetNVMLVersion", NULL)            \
	X(memory2, NVML_FALLBACK, (nvml_device, struct nvml_memory2 *),                            \
	  "nvmlDeviceGetMemoryInfo_v2", NULL)                                                      \
	X(memory, NVML_MORE, (nvml_device, struct nvml_memory *), "nvmlDeviceGetMemoryInfo", NULL) \
	X(rates, NVML_MORE, (nvml_device, struct nvml_rates *), "nvmlDeviceGetUtilizationRates",   \
	  NULL)                                                                                    \
	X(samples, NVML_MORE,                                                                      \
	  (nvml_device, int, unsigned long long, int *, unsigned int *, struct nvml_sample *),     \
	  "nvmlDeviceGetSamples", NULL)                                                            \
	X(encoder, NVML_MORE, (nvml_device, unsigned int *, unsigned int *),                       \
	  "nvmlDeviceGetEncoderUtilization", NULL)                                                 \
	X(decoder, NVML_MORE, (nvml_device, unsigned int *, unsigned int *),                       \
	  "nvmlDeviceGetDecoderUtilization", NULL)                                                 \
	X(power, NVML_MORE, (nvml_device, unsigned int *), "nvmlDeviceGetPowerUsage", NULL)        \
	X(power_limit, NVML_MORE, (nvml_device, unsigned int *),                                   \
	  "nvmlDeviceGetEnforcedPowerLimit", NULL)                                                 \
	X(energy, NVML_MORE, (nvml_device, unsigned long long *),                                  \
	  "nvmlDeviceGetTotalEnergyConsumption", NULL)                                             \
	X(temperature, NVML_MORE, (nvml_device, int, unsigned int *), "nvmlDeviceGetTemperature",  \
	  NULL)                                                                                    \
	X(temperature_limit, NVML_MORE, (nvml_device, int, unsigned int *),                        \
	  "nvmlDeviceGetTemperatureThreshold", NULL)                                               \
	X(fan, NVML_MORE, (nvml_device, unsigned int *), "nvmlDeviceGetFanSpeed", NULL)            \
	X(clock, NVML_MORE, (nvml_device, int, unsigned int *), "nvmlDeviceGetClockInfo", NULL)    \
	X(clock_max, NVML_MORE, (nvml_device, int, unsigned int *), "nvmlDeviceGetMaxClockInfo",   \
	  NULL)                                                                                    \
	X(reasons, NVML_MORE, (nvml_device, unsigned long long *),                                 \
	  "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")   \
	X(violation, NVML_MORE, (nvml_device, int, struct nvml_violation *),                       \
	  "nvmlDeviceGetViolationStatus", NULL)                                                    \
	X(ecc, NVML_MORE, (nvml_device, int, int, unsigned long long *),                           \
	  "nvmlDeviceGetTotalEccErrors", NULL)                                                     \
	X(compute, NVML_MORE, (nvml_device, unsigned int *, struct nvml_process *),                \
	  "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")    \
	X(graphics, NVML_MORE, (nvml_device, unsigned int *, struct nvml_process *),               \
	  "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2")  \
	X(compute_v1, NVML_FALLBACK, (nvml_device, unsigned int *, struct nvml_process_v1 *),      \
	  "nvmlDeviceGetComputeRunningProcesses", NULL)                                            \
	X(graphics_v1, NVML_FALLBACK, (nvml_device, unsigned int *, struct nvml_process_v1 *),     \
	  "nvmlDeviceGetGraphicsRunningProcesses", NULL)                                           \
	X(use, NVML_MORE, (nvml_device, struct nvml_use *, unsigned int *, unsigned long long),    \
	  "nvmlDeviceGetProcessUtilization", NULL)                                                 \
	X(mig_max, NVML_MORE, (nvml_device, unsigned int *), "nvmlDeviceGetMaxMigDeviceCount",     \
	  NULL)                                                                                    \
	X(mig_handle, NVML_MORE, (nvml_device, unsigned int, nvml_device *),                       \
	  "nvmlDeviceGetMigDeviceHandleByIndex", NULL)

#define NVML_MEMBER(member, needed, args, symbol, before) int(*member) args;
struct nvmlapi {
	NVML_FUNCTIONS(NVML_MEMBER)
	const char *(*error)(int);
};

/* Finds the library and its functions, and starts it. Names of missing functions are added to
 * `missing`, with blanks between. EXIT_PREREQUISITE: there is no library, it lacks a required
 * function, or it finds no driver. It may take seconds, and never return if the driver hangs. */
int nvmlapi_open(struct nvmlapi *api, struct strbuf *missing, struct err *e);

#endif
