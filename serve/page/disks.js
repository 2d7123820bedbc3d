// SPDX-License-Identifier: Apache-2.0
// disks: what family disk recorded, as `sonde disk` answers: disks, who asked them, files, calls that wait for a disk, single slow requests, opens that failed, file systems
// that fill, deleted files. Each is an entry of DISKS_VIEWS by `how`: the words of its button, the option that asks for it, its columns.

const disksUs = (v) => (v ? formatTime(v * 1000) : '');
const disksWho = {key: 'who', title: 'Who', value: (r) => tablesEnd(r), pick: true, keep: true};
const disksNumber = (key, title, text, more) => ({key, title, kind: 'num', value: (r) => r[key], text: (r) => (r[key] ? text(r[key]) : ''), ...more});
const disksBytes = (key, title, more) => disksNumber(key, title, formatBytes, more);
const disksTime = (key, title, more) => disksNumber(key, title, (v) => disksUs(v), more);
const disksCount = (key, title, more) => disksNumber(key, title, formatCount, more);
const disksText = (key, title, more) => ({key, title, value: (r) => r[key], ...more});
const disksKept = {keep: true};
// What is past the limits of what is recorded one by one.
const disksShown = (path, what) => path.replace(/^(.*\/)?~other$/, (all, folder) => `other ${what}${folder ? ` of ${folder.length > 1 ? folder.slice(0, -1) : folder}` : ''}`);
const disksFile = {key: 'file', title: 'File', kind: 'fn', value: (r) => r.file, text: (r) => (r.file ? formatSeen(disksShown(r.file, 'files')) : ''), keep: true};
const DISKS_SUMS = [disksCount('reads', 'Reads'), disksBytes('read_bytes', 'Read', disksKept), disksTime('read_p50_us', 'Half of the reads within'), disksTime('read_p99_us', '99 % within'),
	disksCount('writes', 'Writes'), disksBytes('write_bytes', 'Written', disksKept), disksTime('write_p50_us', 'Half of the writes within'), disksTime('write_p99_us', '99 % within'),
	disksCount('errors', 'Failed')];
const DISKS_VIEWS = {
	'': {text: 'Disks', option: '', columns: [
		disksText('disk', 'Disk', disksKept),
		{key: 'busy', title: 'Busy', kind: 'num', value: (r) => (r.busy_us === null ? null : r.busy_us / 1e6 / r.seconds), text: (r) => (r.busy_us ? wordsShare(r.busy_us / 1e6 / r.seconds) : ''), bar: (r) => (r.busy_us || 0) / 1e6 / r.seconds, keep: true},
		...DISKS_SUMS,
		{key: 'under', title: 'Lies on', value: (r) => (r.under || []).join(', ')},
	]},
	who: {text: 'Who asked', option: '', columns: [disksWho, disksText('disk', 'Disk', disksKept), disksTime('us', 'Its requests took', disksKept), ...DISKS_SUMS]},
	files: {text: 'Files', option: 'files', columns: [
		disksText('file', 'File', {kind: 'fn', text: (r) => (r.file ? disksFile.text(r) : 'of no file (direct, swap, metadata)'), keep: true}), disksWho,
		disksBytes('read_bytes', 'Read', disksKept), disksBytes('write_bytes', 'Written', disksKept), disksBytes('later_bytes', 'Written later by the kernel', disksKept),
		{key: 'grown_bytes', title: 'Grew', kind: 'num', value: (r) => r.grown_bytes, text: (r) => (r.grown_bytes ? resourcesSigned(r.grown_bytes) : '')}, disksText('disk', 'Disk'),
	]},
	fsync: {text: 'Waits for a disk', option: 'fsync', columns: [
		disksFile, disksWho, disksText('call', 'Call'), disksCount('calls', 'Calls', disksKept), disksTime('us', 'Took', disksKept),
		disksTime('p50_us', 'Half within'), disksTime('p99_us', '99 % within', disksKept), disksTime('lasting_us', 'Not back for', disksKept), disksCount('errors', 'Failed'),
	]},
	calls: {text: 'Reads and writes', option: 'calls', columns: [
		disksFile, disksWho, disksText('call', 'Call', disksKept), disksCount('calls', 'Calls', disksKept), disksBytes('bytes', 'Moved', disksKept),
		disksTime('us', 'Took', disksKept), disksTime('p50_us', 'Half within'), disksTime('p99_us', '99 % within'), disksBytes('disk_bytes', 'Of that, read from a disk'), disksCount('errors', 'Failed'),
		disksText('seen', 'In the container'),
	]},
	locks: {text: 'Locks of files', option: 'locks', columns: [
		disksFile, disksWho, disksText('lock', 'Lock'), disksCount('waits', 'Waits', disksKept), disksTime('us', 'Took', disksKept),
		disksTime('longest_us', 'Longest'), disksTime('lasting_us', 'Waits still', disksKept), disksText('holder', 'Held by', disksKept), {key: 'holder_pid', title: 'Its pid', kind: 'num', value: (r) => r.holder_pid, text: (r) => (r.holder_pid ? String(r.holder_pid) : '')},
	]},
	slow: {text: 'Slow requests', option: 'slow', columns: [
		{key: 'when', title: 'When', value: (r) => r.time_ns, text: (r) => wordsClock(r.time_ns, Date.now() * 1e6), keep: true}, disksTime('us', 'Took', disksKept), disksTime('queue_us', 'Of that, before the disk got it'),
		disksText('disk', 'Disk', disksKept), disksText('op', 'What'), disksBytes('bytes', 'Size'), disksWho, disksText('thread', 'Thread'),
		{key: 'stack', title: 'Waited in', kind: 'fn', value: (r) => (r.stack || []).join(' < '), keep: true}, {key: 'failed', title: 'Trouble', value: (r) => (r.failed ? 'failed' : '')},
	]},
	opens: {text: 'Failed opens', option: 'opens', columns: [disksText('path', 'Path', {kind: 'fn', text: (r) => formatSeen(disksShown(r.path || '', 'paths')), keep: true}), disksWho, disksText('error', 'Error', disksKept), disksCount('opens', 'Opens', disksKept)]},
	full: {text: 'What fills', option: 'full', columns: [
		disksText('mount', 'File system', disksKept), disksBytes('size', 'Size'), disksBytes('left', 'Left', disksKept),
		{key: 'filled_bytes', title: 'Less is left', kind: 'num', value: (r) => r.filled_bytes, text: (r) => (r.filled_bytes ? resourcesSigned(r.filled_bytes) : ''), keep: true},
		{key: 'full_s', title: 'Full in', kind: 'num', value: (r) => r.full_s, text: (r) => (r.full_s === null ? '' : formatTime(r.full_s * 1e9)), keep: true},
		{key: 'by', title: 'Most by', kind: 'fn', value: (r) => (r.by || []).slice(0, 1).map((b) => `${b.file || ''}${b.container || b.comm ? ` (${b.container || b.comm})` : ''}`).join(''), keep: true},
	]},
	deleted: {text: 'Deleted, still open', option: 'deleted', columns: [
		disksText('file', 'File', {kind: 'fn', keep: true}), disksBytes('bytes', 'Takes', disksKept), disksWho, disksCount('holders', 'Processes have it open'), disksText('mount', 'File system'),
	]},
};
const disksView = (p) => DISKS_VIEWS[p.how] || DISKS_VIEWS[''];
const disksParams = (p) => ({number: 500, ...(disksView(p).option ? {[disksView(p).option]: true} : {})});
const disksRows = (d, p) => (p.how === 'who' ? d.who || [] : d.rows).map((r) => ({...r, seconds: Math.max(d.seconds || 0, 1)}));
const disksWays = (p) => [domMake('div', {className: 'choice', role: 'group', ariaLabel: 'What of the disks'}, ...Object.entries(DISKS_VIEWS).map(([how, v]) => {
	const b = domButton(v.text, () => LINKS.change({how, sort: ''}));
	b.setAttribute('aria-pressed', disksView(p) === v);
	return b;
}))];
