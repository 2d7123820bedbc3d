/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reqstream: which requests last until their client leaves: streams (events, logs, watches,
 * subscriptions, replication) and long polls (blocking reads). Their time says nothing about how
 * fast a service is. They are known by what was asked; of HTTP also by an answer that begins at
 * once and goes on for long. requests-slow.sql (tools/checks/queries) has the same list.
 */
#ifndef SONDE_TOOLS_REQSTREAM_H
#define SONDE_TOOLS_REQSTREAM_H

#include <stdbool.h>

#include "tools/requests/reqrows.h"

bool reqstream_is(const struct reqsingle *r);
/* Is it a request to a container engine? To start a container takes long, and no user waits. */
bool reqstream_is_engine(const char *service);

#endif
