/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys: from what a terminal sends to keys. Pure.
 *
 *  1. UTF-8 is the character; an invalid byte is dropped (KEY_NONE).
 *  2. CR and LF are Enter, DEL and ^H Backspace; other control bytes are dropped.
 *  3. ESC [ parameters final, and ESC O final, are the keys with a name below, whatever modifiers
 * the parameters have; any other sequence is dropped as a whole. One of more than 32 bytes is not a
 * key: its ESC is dropped.
 *  4. ESC alone is Escape, once the caller knows that nothing follows it.
 */
#ifndef SONDE_TOOLS_KEYS_H
#define SONDE_TOOLS_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	KEY_NONE = 0,
	KEY_UP = 0x110000,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_ENTER,
	KEY_ESCAPE,
	KEY_BACKSPACE
};

/* The first key of n > 0 bytes, and how many of them it is; 0: not whole yet (never if `last`:
 * nothing follows). */
size_t keys_decode(const unsigned char *bytes, size_t n, bool last, uint32_t *key);

#endif
