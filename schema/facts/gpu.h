/* SPDX-License-Identifier: Apache-2.0 */
/* gpu: what family gpu stores (loaders/gpu): the columns of its tables, in the tables' order. */
#ifndef SONDE_FACTS_GPU_H
#define SONDE_FACTS_GPU_H

#include "schema/facts/fact.h"

#define GPU_COLUMNS(X)                                                                             \
	X(GPU_UUID, "uuid", TEXT, KEY, "", "text.id: what the driver calls the device for always") \
	X(GPU_NUMBER, "gpu", TEXT, GAUGE, "",                                                      \
	  "text.id: its number, as nvidia-smi has it; 0:1 is instance 1 of device 0")              \
	X(GPU_NAME, "name", TEXT, GAUGE, "", "text.id: its model")                                 \
	X(GPU_BUSY, "busy_us", NUMBER, COUNTER, "us",                                              \
	  "some kernel ran on it, by the driver's samples")                                        \
	X(GPU_MEM_BUSY, "mem_busy_us", NUMBER, COUNTER, "us", "its memory was read or written")    \
	X(GPU_ENC, "encoder_us", NUMBER, COUNTER, "us", "the video encoder was busy")              \
	X(GPU_DEC, "decoder_us", NUMBER, COUNTER, "us", "the video decoder was busy")              \
	X(GPU_MEM_TOTAL, "mem_total", NUMBER, GAUGE, "bytes", "memory of the device")              \
	X(GPU_MEM_USED, "mem_used", NUMBER, GAUGE, "bytes",                                        \
	  "of it in use; of drivers before 510 with what the driver keeps for itself")             \
	X(GPU_POWER, "power_mw", NUMBER, GAUGE, "mW", "what it draws")                             \
	X(GPU_POWER_LIMIT, "power_limit_mw", NUMBER, GAUGE, "mW", "what it may draw")              \
	X(GPU_ENERGY, "energy_mj", NUMBER, COUNTER, "mJ", "what it drew")                          \
	X(GPU_TEMPERATURE, "temperature_m", NUMBER, GAUGE, "thousandths of a degree Celsius",      \
	  "how warm")                                                                              \
	X(GPU_TEMPERATURE_LIMIT, "temperature_limit_m", NUMBER, GAUGE,                             \
	  "thousandths of a degree Celsius", "where it slows itself down")                         \
	X(GPU_FAN, "fan_percent", NUMBER, GAUGE, "percent", "speed of its fan")                    \
	X(GPU_CLOCK, "clock_mhz", NUMBER, GAUGE, "MHz", "clock of its processors")                 \
	X(GPU_CLOCK_MAX, "clock_max_mhz", NUMBER, GAUGE, "MHz", "the most of it")                  \
	X(GPU_MEM_CLOCK, "mem_clock_mhz", NUMBER, GAUGE, "MHz", "clock of its memory")             \
	X(GPU_REASONS, "throttle_reasons", NUMBER, GAUGE, "",                                      \
	  "why its clock is lower than it could be: the driver's bits; gpu_stats has words")       \
	X(GPU_HOT, "hot_us", NUMBER, COUNTER, "us", "slowed down because it was hot")              \
	X(GPU_CAPPED, "capped_us", NUMBER, COUNTER, "us", "slowed down at its power limit")        \
	X(GPU_ECC, "ecc_errors", NUMBER, COUNTER, "", "memory errors that could not be corrected")

#define GPU_PROCESS_COLUMNS(X)                                                                   \
	X(GPU_PROCESS_UUID, "uuid", TEXT, KEY, "", "text.id: as in gpu_row")                     \
	X(GPU_PROCESS_ID, "process", PROCESS, KEY, "", "process.id; 0: not known")               \
	X(GPU_PROCESS_NUMBER, "gpu", TEXT, GAUGE, "", "text.id: as in gpu_row")                  \
	X(GPU_PROCESS_MEM, "mem", NUMBER, GAUGE, "bytes", "the device's memory that it has")     \
	X(GPU_PROCESS_BUSY, "busy_us", NUMBER, COUNTER, "us",                                    \
	  "its kernels ran, by the driver's samples")                                            \
	X(GPU_PROCESS_MEM_BUSY, "mem_busy_us", NUMBER, COUNTER, "us",                            \
	  "it read or wrote the device's memory")                                                \
	X(GPU_PROCESS_ENC, "encoder_us", NUMBER, COUNTER, "us", "it had the video encoder busy") \
	X(GPU_PROCESS_DEC, "decoder_us", NUMBER, COUNTER, "us", "it had the video decoder busy")

enum gpu_column { GPU_COLUMNS(FACT_ID) GPU_N };
enum gpu_process_column { GPU_PROCESS_COLUMNS(FACT_ID) GPU_PROCESS_N };

extern const struct fact GPU_FACT, GPU_PROCESS_FACT;

#endif
