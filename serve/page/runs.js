// SPDX-License-Identifier: Apache-2.0
// runs: the requests that have no answer at the end of the range, as a small table; hidden while there are none.

const runsEnd = (e) => (e.comm ? `${e.container ? `${e.container} (${e.comm})` : e.comm} ${e.pid}` : e.address || '');
const RUNS_COLUMNS = [
	{key: 'operation', title: 'Request', kind: 'fn', value: (r) => r.operation, pick: true},
	{key: 'since', title: 'Since', value: (r) => r.since_ns, text: (r) => wordsClock(r.since_ns, Date.now() * 1e6), keep: true},
	{key: 'lasts', title: 'Runs for', kind: 'num', value: (r) => r.lasts_ns, text: (r) => formatTime(r.lasts_ns), keep: true},
	{key: 'client', title: 'Client', value: (r) => runsEnd(r.client)},
	{key: 'server', title: 'Server', value: (r) => runsEnd(r.server)},
	{key: 'doing', title: 'Its thread', kind: 'mod', value: (r) => r.doing},
	{key: 'protocol', title: 'Protocol', value: (r) => r.protocol},
];

// on: {pick(end)}: of the server, else of the client
function runsInit(on) {
	const grid = gridInit($('runs-rows'), {pick: (r) => on.pick(r.server.comm ? r.server : r.client)});
	return {
		show(answer) {
			const d = answer.ok ? answer.data : {rows: []}, n = d.rows.length, failed = !answer.ok && answer.status >= 500;
			$('runs').hidden = !n && !failed;
			if (failed)
				$('runs-brief').textContent = `Which requests have no answer is not known: ${formatSeen(answer.error)}`;
			if (!n)
				return;
			$('runs-brief').textContent = `${formatCount(d.running)} request${d.running === 1 ? ' has' : 's have'} no answer${d.ended ? ' at the end of the recording' : ''}, the longest for ${formatTime(d.rows[0].lasts_ns)}`;
			$('runs-left').textContent = [d.streams ? `Without ${formatCount(d.streams)} streams and long polls.` : '', d.others ? `${formatCount(d.others)} more are not listed: too many at a time.` : ''].join(' ').trim();
			grid.set(d.rows, RUNS_COLUMNS, '-lasts', '');
		},
	};
}
