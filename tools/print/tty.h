/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tty: the whole terminal for a program that redraws it and reads single keys
 * (docs/decisions/0067): the alternate screen, no echo, no cursor. However the program ends, except
 * by SIGKILL, the terminal is restored: tty_leave, exit(), a signal that ends or stops it, an
 * abort. Ctrl-C ends it with 0 once something was drawn.
 */
#ifndef SONDE_TOOLS_TTY_H
#define SONDE_TOOLS_TTY_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

enum tty_event {
	TTY_KEY,
	TTY_RESIZED /* or continued after a stop: redraw */,
	TTY_TIMEOUT,
	TTY_GONE
};

/* stdin and stdout are terminals. Once a process. */
int tty_enter(struct err *e);
void tty_leave(void);
void tty_size(unsigned *rows, unsigned *columns);
/* All of a screen at once. */
void tty_draw(const char *text, size_t len);
/* Waits for a key, at most so long. */
enum tty_event tty_wait(int64_t timeout_ms, uint32_t *key);

#endif
