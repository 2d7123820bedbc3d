/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/runtimes.h"

#include "loaders/lib/runtimes/hotspot.h"
#include "loaders/lib/runtimes/perl/perl.h"
#include "loaders/lib/runtimes/php.h"
#include "loaders/lib/runtimes/python.h"
#include "loaders/lib/runtimes/ruby.h"
#include "loaders/lib/runtimes/v8/v8.h"
#include "schema/base/array.h"
#include "schema/image/format.h"

/* The functions of a runtime by the names that its header gives them. */
#define RUNTIME_OPENED(kind)                                                                     \
	static void *kind##_of(const struct runtime_memory *m, const void *section, size_t size, \
			       uint64_t bias)                                                    \
	{                                                                                        \
		return kind##_open(m, section, size, bias);                                      \
	}                                                                                        \
	static void kind##_end(void *runtime)                                                    \
	{                                                                                        \
		kind##_close(runtime);                                                           \
	}

#define RUNTIME(kind)                                                                 \
	RUNTIME_OPENED(kind)                                                          \
	static void kind##_frames(void *runtime, const struct runtime_native *native, \
				  struct script_stack *out)                           \
	{                                                                             \
		kind##_stack(runtime, native, out);                                   \
	}

RUNTIME(python)
RUNTIME(php)
RUNTIME(ruby)
RUNTIME(perl)
RUNTIME(v8)
RUNTIME_OPENED(hotspot)

static bool hotspot_frames(void *runtime, const struct runtime_native *native,
			   struct runtime_follow *f, struct script_stack *out)
{
	return hotspot_follow(runtime, native, f, out);
}

static enum runtime_gil python_lock(void *runtime, uint64_t fs_base, uint64_t futex)
{
	return python_gil(runtime, fs_base, futex);
}

const struct runtime_walker RUNTIME_WALKERS[] = {
	{"python", "[python]", IMAGE_SECTION_PYTHON, python_of, python_end, python_frames, NULL,
	 python_lock},
	{"php", "[php]", IMAGE_SECTION_PHP, php_of, php_end, php_frames, NULL, NULL},
	{"ruby", "[ruby]", IMAGE_SECTION_RUBY, ruby_of, ruby_end, ruby_frames, NULL, NULL},
	{"java", "[java]", IMAGE_SECTION_HOTSPOT, hotspot_of, hotspot_end, NULL, hotspot_frames,
	 NULL},
	{"perl", "[perl]", IMAGE_SECTION_PERL, perl_of, perl_end, perl_frames, NULL, NULL},
	{"javascript", "[javascript]", IMAGE_SECTION_V8, v8_of, v8_end, v8_frames, NULL, NULL},
};
const size_t RUNTIME_KIND_COUNT = ARRAY_SIZE(RUNTIME_WALKERS);
