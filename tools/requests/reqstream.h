/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reqstream: which requests last until their client leaves: streams (events, logs, watches,
 * subscriptions, replication) and long polls (blocking reads). Their time says nothing about how
 * fast a service is. They are known by what was asked; of HTTP also by an answer that begins at
 * once and goes on for long.
 */
#ifndef SONDE_TOOLS_REQSTREAM_H
#define SONDE_TOOLS_REQSTREAM_H

#include <stdbool.h>

#include "tools/requests/reqrows.h"

bool reqstream_is(const struct reqsingle *r);
/* Its two halves, for many rows of the same requests: by protocol, service and operation, which
 * takes most of the time, and by the answer. */
bool reqstream_asked(const char *protocol, const char *service, const char *operation);
bool reqstream_answered(const struct reqsingle *r);
/* Is it a request to a container engine? To start a container takes long, and no user waits. */
bool reqstream_is_engine(const char *service);

#endif
