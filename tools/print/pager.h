/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pager: long text on a terminal goes through a program that shows it by screens.
 *
 *  1. $SONDE_PAGER, else $PAGER, else `less -FRX` (with $LESS unset it is FRX for any less: what
 * fits on one screen is just printed). Empty, or `cat`: no pager. Words are split at spaces; a
 * command with other shell characters is run by sh.
 *  2. No pager if stdout is not a terminal, TERM is dumb, --no-pager was given, or the program does
 * not exist.
 *  3. What is written to stderr meanwhile goes to the pager, too, if stderr is the terminal.
 *  4. Leaving the pager early ends sonde with 0, silently. Ctrl-C is the pager's; sonde stops
 * reading, and waits for it.
 */
#ifndef SONDE_TOOLS_PAGER_H
#define SONDE_TOOLS_PAGER_H

/* --no-pager: pager_start does nothing from now on. */
void pager_forbid(void);
/* Before anything is printed. From now on stdout is as wide and as colourful as the terminal was.
 */
void pager_start(void);
/* Where stderr was before the pager: what is taken away again is written there. */
int pager_terminal(void);
/* All is printed: waits until the person has read it. Without pager_start: nothing. */
void pager_end(void);

#endif
