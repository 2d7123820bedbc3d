/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pulse: whether what a source logged in the time since the last flush is worth an event: a burst
 * of lines (counts.h), or of errors. Pure.
 *
 * A burst of errors: PULSE_ERRORS messages or more, and PULSE_TIMES as many as usual in as much
 * time (of the last ten minutes). Each is an event once; again after PULSE_AGAIN_NS without one.
 */
#ifndef SONDE_LOGS_PULSE_H
#define SONDE_LOGS_PULSE_H

#include <stdbool.h>
#include <stdint.h>

#define PULSE_ERRORS   10
#define PULSE_TIMES    8
#define PULSE_AGAIN_NS 600000000000ll

struct pulse {
	/* since the last flush */
	uint64_t lines, errors, most;
	uint32_t pattern; /* of the errors, the one that came `most` often */
	bool bursts;
	/* kept */
	double usual, known_s;                 /* errors a second; for how long that is known */
	int64_t since_ns, burst_ns, errors_ns; /* boot clock; 0: never */
};

enum pulse_tells { PULSE_BURST = 1, PULSE_OF_ERRORS = 2 };

void pulse_lines(struct pulse *p, uint64_t lines, uint64_t errors, bool bursts);
void pulse_hit(struct pulse *p, uint32_t pattern, uint64_t messages);
/* A flush is over, `now_ns`: which events there are, bits of enum pulse_tells. Clear it afterwards.
 */
unsigned int pulse_beat(struct pulse *p, int64_t now_ns);
void pulse_clear(struct pulse *p);

#endif
