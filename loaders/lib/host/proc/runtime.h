/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime: the language and runtime of a process, the runtime's version, how the program was
 * linked, and which libc. From the names of mapped files and the executable's index; opens nothing.
 * The first rule that matches:
 *
 *   1. the executable is a Go program (by its index): go, with the version that built it
 *   2. the executable's name is an interpreter's (python3.11, pypy3, node, nodejs, ruby3.1, php8.2,
 *      php-fpm8.2, perl, java, dotnet, beam.smp, lua5.4): that, and the version if the name has one
 *   3. a runtime's library is mapped (libjvm, libcoreclr, libnode): java, dotnet, node
 *   4. the executable is a server that runs scripts (apache2, uwsgi, ...) and the interpreter's
 *      library is mapped (libpython, libruby, libphp, libperl): that
 *   5. libstdc++ or libc++ is mapped: c++
 *
 * Otherwise no language. If the name has no version, it is taken from a mapped library's name or
 * folder: libpython3.11.so.1.0, .../Microsoft.NETCore.App/8.0.1/, .../jvm/java-17-openjdk-amd64/.
 * Linking is dynamic if a dynamic loader is mapped, which the kernel does before the program runs;
 * static if the executable is mapped without one. The loader's name tells the libc.
 */
#ifndef SONDE_HOST_RUNTIME_H
#define SONDE_HOST_RUNTIME_H

#include <stddef.h>

#include "schema/store/write/writer.h"

struct runtime_facts {
	const char *exe;          /* path, "" if unknown */
	const char *const *paths; /* files that are mapped executable, including `exe` */
	size_t n_paths;
	const char *go_version; /* of the executable; "": a Go program of unknown version; NULL: not
				   a Go program */
};

struct runtime {
	const char *lang; /* static, "" if unknown */
	char version[48]; /* "go1.22.1", "python3.11", "php"; "" if the language is unknown */
	enum store_linking linking;
	enum store_libc libc;
};

/* Pure. */
void runtime_tell(const struct runtime_facts *f, struct runtime *out);

#endif
