/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_blob: template, style, loader and script of the flame graph page, from tools/page, as part
 * of the binary. Not NUL-terminated: each one extends from its begin to its end.
 */
#ifndef SONDE_TOOLS_PAGE_BLOB_H
#define SONDE_TOOLS_PAGE_BLOB_H

extern const char page_html_begin[], page_html_end[];
extern const char page_css_begin[], page_css_end[];
extern const char page_loader_begin[], page_loader_end[];
extern const char page_script_begin[], page_script_end[]; /* gzip, base64 */

#endif
