/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unitname: one source for the units that systemd numbers, each of which lasts as long as a login
 * or a command: else a host with many logins has thousands of sources, and no room for others.
 * Pure.
 *
 *   session-3.scope, session-c12.scope        session.scope
 *   run-u51.service, run-r0f3a…9.scope, run-p5-i6.scope        run.service, run.scope
 */
#ifndef SONDE_LOGS_UNITNAME_H
#define SONDE_LOGS_UNITNAME_H

/* In place: it only becomes shorter. */
void unitname_fold(char *name);

#endif
