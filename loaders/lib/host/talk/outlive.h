/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outlive: a forked process that goes on after its parent, to end what was begun in other programs.
 * No signal of the terminal or of the parent ends it, and it keeps none of the parent's output
 * open.
 */
#ifndef SONDE_HOST_OUTLIVE_H
#define SONDE_HOST_OUTLIVE_H

/* Right after fork. `name`: its thread's, at most 15 characters. Its children leave no zombies:
 * their users may stop them, so it must not wait for one. */
void outlive_begin(const char *name);

#endif
