// SPDX-License-Identifier: Apache-2.0
// format: numbers as people read them, by the unit of a profile. No DOM.

const THIN = '\u202f';

// For all displayed text: characters that would change the direction of the text, or that are invisible, are shown like
// strbuf_addshown does.
function formatSeen(text) {
	return text.replace(/[\x80-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0d\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu,
		(c) => (c.length < 2 ? '\\u' : '\\U') + c.codePointAt(0).toString(16).padStart(c.length < 2 ? 4 : 8, '0'));
}

function formatCount(v) {
	return String(Math.round(v)).replace(/\B(?=(\d{3})+$)/g, THIN);
}

// Three significant digits, without trailing zeros.
const formatDigits = (v) => String(Number(v.toFixed(v < 9.995 ? 2 : v < 99.95 ? 1 : 0)));

// Durations and sizes as schema/base/units.h prints them, but "\u00b5s" for "us".
function formatTime(ns) {
	let v = Math.max(ns, 0), i = 0;
	if (!v)
		return '0 s';
	for (const unit of ['ns', '\u00b5s', 'ms']) {
		if (v < 999.5)
			return `${formatDigits(v)} ${unit}`;
		v /= 1000;
	}
	if (v < 119.5)
		return `${formatDigits(v)} s`;
	const units = [['s', 60], ['min', 60], ['h', 24], ['d', Infinity]];
	for (v = Math.round(v); i < 2 && v >= 2 * units[i][1] * units[i + 1][1]; i++)
		v = Math.round(v / units[i][1]);
	const per = units[i][1], small = v % per;
	return `${Math.floor(v / per)} ${units[i + 1][0]}${small ? ` ${small} ${units[i][0]}` : ''}`;
}

function formatBytes(v) {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
	let i = 0;
	for (; v >= 1023.5 && i + 1 < units.length; i++)
		v /= 1024;
	return `${formatDigits(v)} ${units[i]}`;
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
		count: (v) => `${formatCount(v)} ${profile.counted}`,
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
