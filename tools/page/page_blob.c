/* SPDX-License-Identifier: Apache-2.0 */
/* The assembler finds these files where the compiler finds headers; tools/page/room.mk declares the
 * dependency. */
#include "tools/page/page_blob.h"

#define BLOB(name, file)                                    \
	__asm__(".pushsection .rodata\n"                    \
		".global " #name "_begin\n"                 \
		".global " #name "_end\n" #name "_begin:\n" \
		".incbin \"" file "\"\n" #name "_end:\n"    \
		".byte 0\n"                                 \
		".popsection\n")

BLOB(page_html, "tools/page/page.html");
BLOB(page_css, "tools/page/page.min.css");
BLOB(page_loader, "tools/page/script/loader.js");
BLOB(page_script, "tools/page/page.js.gz64");
