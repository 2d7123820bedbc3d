/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ending: whether this program was asked to end (SIGTERM, SIGINT). What is being sent has
 * ENDING_GRACE_S to be taken, so that it need not be sent twice.
 */
#ifndef SONDE_PUSH_ENDING_H
#define SONDE_PUSH_ENDING_H

#include <signal.h>
#include <stdbool.h>

#define ENDING_GRACE_S 5

/* From now on both signals wait to be looked at. */
void ending_begin(sigset_t *ends);
bool ending_asked(void);
/* It was asked, and the grace is over. */
bool ending_now(void);

#endif
