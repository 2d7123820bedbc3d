/* SPDX-License-Identifier: Apache-2.0 */
/* agentjar: the jar of loaders/java/agent, as bytes of the program: it is written into a Java
 * program's /tmp while it is loaded. Empty where sonde was built without a JDK. */
#ifndef SONDE_JAVA_AGENTJAR_H
#define SONDE_JAVA_AGENTJAR_H

#include <stddef.h>

extern const unsigned char AGENTJAR[], AGENTJAR_END[];

static inline size_t agentjar_size(void)
{
	return (size_t)(AGENTJAR_END - AGENTJAR);
}

#endif
