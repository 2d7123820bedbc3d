/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime: what a process is a program of: language, runtime with its version, how it was linked,
 * which libc. From names of mapped files and what the executable's index says; nothing is opened.
 * In this order, the first that fits:
 *
 *   1. the executable is a Go program (its index says so) go, the version that it was built with
 *   2. the executable's name is an interpreter's: python3.11, pypy3, node, nodejs, ruby3.1, php8.2,
 *      php-fpm8.2, perl, java, dotnet, beam.smp, lua5.4 that; the version if the name has one
 *   3. a runtime's library is mapped: libjvm, libcoreclr, libnode java, dotnet, node
 *   4. the executable is a server that scripts run inside of (apache2, uwsgi, ...) and the
 *      interpreter's library is mapped: libpython, libruby, libphp, libperl that
 *   5. libstdc++ or libc++ is mapped                                             c++
 *
 * Else no language is told. A version that the name lacks is taken from a mapped library's name or
 * folder: libpython3.11.so.1.0, .../Microsoft.NETCore.App/8.0.1/, .../jvm/java-17-openjdk-amd64/.
 * Linking is dynamic where a dynamic loader is mapped, which the kernel does before the program
 * runs; static where none is, and the executable is. The loader's name tells the libc.
 */
#ifndef SONDE_HOST_RUNTIME_H
#define SONDE_HOST_RUNTIME_H

#include <stddef.h>

#include "schema/store/write/writer.h"

struct runtime_facts {
	const char *exe;          /* path, "" if not known */
	const char *const *paths; /* files that are mapped executable, `exe` among them */
	size_t n_paths;
	const char *go_version; /* of the executable; "": a Go program of a version that is not
				   told; NULL: no Go program */
};

struct runtime {
	const char *lang; /* static, "" if not known */
	char version[48]; /* "go1.22.1", "python3.11", "php"; "" if no language is known */
	enum store_linking linking;
	enum store_libc libc;
};

/* Pure. */
void runtime_tell(const struct runtime_facts *f, struct runtime *out);

#endif
