/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/agentjar.h"

/* AGENTJAR_FILE: room.mk */
__asm__(".section .rodata\n"
	".global AGENTJAR, AGENTJAR_END\n"
	"AGENTJAR: .incbin \"" AGENTJAR_FILE "\"\n"
	"AGENTJAR_END: .byte 0\n"
	".previous\n");
