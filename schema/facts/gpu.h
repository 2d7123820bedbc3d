/* SPDX-License-Identifier: Apache-2.0 */
/* gpu: what family gpu stores (loaders/gpu): the columns of its tables, in the tables' order. */
#ifndef SONDE_FACTS_GPU_H
#define SONDE_FACTS_GPU_H

#include "schema/facts/fact.h"

#define GPU_COLUMNS(X)                                                                            \
	X(GPU_UUID, "uuid", TEXT, KEY, "", "text.id: permanent id of the device from the driver") \
	X(GPU_NUMBER, "gpu", TEXT, GAUGE, "",                                                     \
	  "text.id: its number, as nvidia-smi has it; 0:1 is instance 1 of device 0")             \
	X(GPU_NAME, "name", TEXT, GAUGE, "", "text.id: its model")                                \
	X(GPU_BUSY, "busy_us", NUMBER, COUNTER, "us",                                             \
	  "time in which a kernel ran on it, by the driver's samples")                            \
	X(GPU_MEM_BUSY, "mem_busy_us", NUMBER, COUNTER, "us", "its memory was read or written")   \
	X(GPU_ENC, "encoder_us", NUMBER, COUNTER, "us", "the video encoder was busy")             \
	X(GPU_DEC, "decoder_us", NUMBER, COUNTER, "us", "the video decoder was busy")             \
	X(GPU_MEM_TOTAL, "mem_total", NUMBER, GAUGE, "bytes", "memory of the device")             \
	X(GPU_MEM_USED, "mem_used", NUMBER, GAUGE, "bytes",                                       \
	  "of it in use; for drivers before 510 including what the driver reserves")              \
	X(GPU_POWER, "power_mw", NUMBER, GAUGE, "mW", "power draw")                               \
	X(GPU_POWER_LIMIT, "power_limit_mw", NUMBER, GAUGE, "mW", "power limit")                  \
	X(GPU_ENERGY, "energy_mj", NUMBER, COUNTER, "mJ", "energy used")                          \
	X(GPU_TEMPERATURE, "temperature_m", NUMBER, GAUGE, "thousandths of a degree Celsius",     \
	  "temperature")                                                                          \
	X(GPU_TEMPERATURE_LIMIT, "temperature_limit_m", NUMBER, GAUGE,                            \
	  "thousandths of a degree Celsius", "temperature at which it throttles")                 \
	X(GPU_FAN, "fan_percent", NUMBER, GAUGE, "percent", "speed of its fan")                   \
	X(GPU_CLOCK, "clock_mhz", NUMBER, GAUGE, "MHz", "clock of its processors")                \
	X(GPU_CLOCK_MAX, "clock_max_mhz", NUMBER, GAUGE, "MHz", "its maximum")                    \
	X(GPU_MEM_CLOCK, "mem_clock_mhz", NUMBER, GAUGE, "MHz", "clock of its memory")            \
	X(GPU_REASONS, "throttle_reasons", NUMBER, GAUGE, "",                                     \
	  "reasons for a lower clock: the driver's bits; gpu_stats has words")                    \
	X(GPU_HOT, "hot_us", NUMBER, COUNTER, "us", "throttled because it was hot")               \
	X(GPU_CAPPED, "capped_us", NUMBER, COUNTER, "us", "throttled at its power limit")         \
	X(GPU_ECC, "ecc_errors", NUMBER, COUNTER, "", "memory errors that could not be corrected")

#define GPU_PROCESS_COLUMNS(X)                                                                   \
	X(GPU_PROCESS_UUID, "uuid", TEXT, KEY, "", "text.id: as in gpu_row")                     \
	X(GPU_PROCESS_ID, "process", PROCESS, KEY, "", "process.id; 0: not known")               \
	X(GPU_PROCESS_NUMBER, "gpu", TEXT, GAUGE, "", "text.id: as in gpu_row")                  \
	X(GPU_PROCESS_MEM, "mem", NUMBER, GAUGE, "bytes", "device memory it uses")               \
	X(GPU_PROCESS_BUSY, "busy_us", NUMBER, COUNTER, "us",                                    \
	  "time its kernels ran, by the driver's samples")                                       \
	X(GPU_PROCESS_MEM_BUSY, "mem_busy_us", NUMBER, COUNTER, "us",                            \
	  "it read or wrote the device's memory")                                                \
	X(GPU_PROCESS_ENC, "encoder_us", NUMBER, COUNTER, "us", "it had the video encoder busy") \
	X(GPU_PROCESS_DEC, "decoder_us", NUMBER, COUNTER, "us", "it had the video decoder busy")

enum gpu_column { GPU_COLUMNS(FACT_ID) GPU_N };
enum gpu_process_column { GPU_PROCESS_COLUMNS(FACT_ID) GPU_PROCESS_N };

extern const struct fact GPU_FACT, GPU_PROCESS_FACT;

#endif
