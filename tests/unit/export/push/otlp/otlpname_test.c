/* SPDX-License-Identifier: Apache-2.0 */
/* otlpname: what metrics and labels are called in OpenTelemetry; labels are taken apart as totals
 * put them together. */
#include <stdio.h>
#include <string.h>

#include "export/metric.h"
#include "export/push/otlp/otlpname.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

static struct otlp_name name_of(const char *metric, const char *kind)
{
	struct otlp_name name;
	unsigned part;
	int i = metric_find(metric, strlen(metric), &part);

	assert_true(i >= 0);
	otlp_name_of((unsigned)i, kind, &name);
	return name;
}

TEST(names_are_those_of_the_conventions_or_sondes_own)
{
	struct otlp_name n = name_of("sonde_container_cpu_seconds_total", "");

	assert_string_equal(n.name, "container.cpu.time");
	assert_string_equal(n.unit, "s");
	n = name_of("sonde_container_memory_bytes", "working");
	assert_string_equal(n.name, "container.memory.working_set");
	assert_true(n.additive && n.without_kind);
	n = name_of("sonde_container_memory_bytes", "anon");
	assert_string_equal(n.name, "sonde.container_memory");
	assert_string_equal(n.unit, "By");
	assert_false(n.additive || n.without_kind);
	n = name_of("sonde_sensor_temperature_celsius", "");
	assert_string_equal(n.name, "sonde.sensor_temperature");
	assert_string_equal(n.unit, "Cel");
}

TEST(no_two_metrics_have_one_name_but_by_kind)
{
	struct otlp_name a, b;

	for (unsigned i = 0; i < N_METRICS; i++)
		for (unsigned k = 0; k < i; k++) {
			otlp_name_of(i, "free", &a);
			otlp_name_of(k, "free", &b);
			assert_string_not_equal(a.name, b.name);
		}
}

TEST(labels_and_values_have_the_names_of_attributes)
{
	assert_string_equal(otlp_label("system.network.io", "direction"), "network.io.direction");
	assert_string_equal(otlp_label("system.disk.io", "direction"), "disk.io.direction");
	assert_string_equal(otlp_label("sonde.requests", "protocol"), "protocol");
	assert_string_equal(otlp_value("network.io.direction", "sent"), "transmit");
	assert_string_equal(otlp_value("cpu.mode", "user"), "user");
}

TEST(labels_are_taken_apart_whatever_is_in_them)
{
	static const struct {
		const char *labels, *said;
	} cases[] = {
		{"", ""},
		{"a=\"x\"", "a:x "},
		{"a=\"x\",b=\"y,z\"", "a:x b:y,z "},
		{"a=\"q\\\"\\\\\\n\"", "a:q\"\\\n "},
		{"a=\"x", "a:x "},
		{"a=x", ""},
		{"a", ""},
		{"a=\"\\", "a:\\ "},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf name cleanup_strbuf = STRBUF_INIT, value cleanup_strbuf = STRBUF_INIT,
				   said cleanup_strbuf = STRBUF_INIT;
		const char *labels = cases[i].labels;

		while (otlp_label_next(&labels, &name, &value))
			strbuf_addf(&said, "%s:%s ", strbuf_str(&name), strbuf_str(&value));
		assert_string_equal(strbuf_str(&said), cases[i].said);
	}
}
