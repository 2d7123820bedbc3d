/* SPDX-License-Identifier: Apache-2.0 */
/* child_reply: the error that a client gets if its child did not answer. */
#ifndef SONDE_SERVE_CHILD_REPLY_H
#define SONDE_SERVE_CHILD_REPLY_H

#include <microhttpd.h>

#include "schema/base/limits/child.h"

/* By how it ended; its own words if it said any. */
enum MHD_Result child_reply_failed(const struct child_limits *limits, struct MHD_Connection *c,
				   const struct child_answer *a);
/* 503: there was no room for it. */
enum MHD_Result child_reply_busy(struct MHD_Connection *c);

#endif
