/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_blob: template, style and script of the flame graph page, as they stand in tools/page, within the binary.
 * Not NUL-terminated: each goes from its begin to its end.
 */
#ifndef SONDE_TOOLS_PAGE_BLOB_H
#define SONDE_TOOLS_PAGE_BLOB_H

extern const char page_html_begin[], page_html_end[];
extern const char page_css_begin[], page_css_end[];
extern const char page_js_begin[], page_js_end[];

#endif
