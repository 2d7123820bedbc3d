/* SPDX-License-Identifier: Apache-2.0 */
/* version: of the query tool. */
#ifndef SONDE_TOOLS_VERSION_H
#define SONDE_TOOLS_VERSION_H

#define SONDE_VERSION "0.1"

#endif
