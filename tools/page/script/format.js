// SPDX-License-Identifier: Apache-2.0
// format: numbers as people read them, by the unit of a profile. No DOM.

const THIN = '\u202f';

// For all displayed text: characters that would change the direction of the text, or that are invisible, are shown like
// strbuf_addshown does.
function formatSeen(text) {
	return text.replace(/[\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
		(c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
}

function formatCount(v) {
	return String(Math.round(v)).replace(/\B(?=(\d{3})+$)/g, THIN);
}

function formatTime(ns) {
	const s = ns / 1e9;
	return s >= 10 ? s.toFixed(1) + ' s' : s >= 1 ? s.toFixed(2) + ' s' : s >= 0.001 || !s ? Math.round(s * 1000) + ' ms'
		: Math.round(ns / 1000) + ' \u00b5s';
}

function formatBytes(v) {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let i = 0;
	for (; v >= 1024 && i < 4; i++)
		v /= 1024;
	return `${i && v < 10 ? v.toFixed(2) : i && v < 100 ? v.toFixed(1) : Math.round(v)} ${units[i]}`;
}

// For one profile, over this many seconds, with `whole` as 100 %.
function formatInit(profile, seconds, whole) {
	const f = {
		whole,
		rated: profile.cumulative,
		share(v, of = whole) {
			const p = of > 0 ? 100 * v / of : 0;
			return (p >= 10 ? p.toFixed(1) : p.toFixed(2)) + ' %';
		},
		value: profile.value_unit === 'bytes' ? formatBytes : profile.value_unit === 'ns' ? formatTime : formatCount,
		count: (v) => `${formatCount(v)} ${profile.count_unit}`,
		// its name if there is room for one word
		rateUnit: profile.value_unit === 'ns' ? (profile.type === 'cpu' ? 'cores' : 'at once') : 'per s',
		rate(v) {
			if (profile.value_unit !== 'ns')
				return f.value(v / seconds);
			const c = v / 1e9 / seconds;
			return c >= 0.01 ? c.toFixed(2) : v ? '<0.01' : '0';
		},
	};
	// "0.41 cores" for a sum over time, "12.3 MiB" for a gauge
	f.main = (v) => (f.rated ? `${f.rate(v)} ${f.rateUnit}` : f.value(v));
	f.short = (v) => (f.rated ? f.rate(v) : f.value(v));
	f.unit = f.rated ? f.rateUnit : '';
	return f;
}

// UTC, as in the heading.
function formatClock(ns, fine) {
	const text = new Date(ns / 1e6).toISOString();
	return text.slice(11, fine ? 23 : 19);
}
