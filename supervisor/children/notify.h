/* SPDX-License-Identifier: Apache-2.0 */
/* notify: telling systemd how we are: one datagram to $NOTIFY_SOCKET. Without one, nothing happens.
 */
#ifndef SONDE_SUPERVISOR_NOTIFY_H
#define SONDE_SUPERVISOR_NOTIFY_H

#include <stdint.h>

/* "READY=1\nSTATUS=..." ; 0, or -errno where there is a socket and it takes nothing. */
int notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* How often WATCHDOG=1 is expected, halved; 0: not at all. */
int64_t notify_watchdog_ns(void);

#endif
