// SPDX-License-Identifier: Apache-2.0
// hotkeys: what each key does; the list that `?` shows is this table. graph: only while the picture has the keyboard focus.

const HOTKEYS = [
	{keys: ['k'], act: 'jump', show: 'Ctrl-K, k', say: 'go to a container, process, function or tab'},
	{keys: ['s'], act: 'spike', say: 'go to the first spike'},
	{keys: ['b'], act: 'brush', say: 'go to the time range; arrow keys move its ends'},
	{keys: ['['], act: 'earlier', show: '[ ]', say: 'previous range, next range'},
	{keys: [']'], act: 'later'},
	{keys: ['z'], act: 'into', say: 'zoom the range to the chosen part'},
	{keys: ['l'], act: 'live', say: 'live: the last 15 minutes, updated'},
	{keys: ['1', '2', '3', '4', '5', '6', '7', '8', '9'], act: 'tab', show: '1 \u2026 9', say: 'containers, processes, functions, waits, changes, requests, checks, restarts, memory'},
	{keys: ['e'], act: 'why', say: 'why was it slow: explain the chosen part'},
	{keys: ['t'], act: 'table', say: 'go to the table'},
	{keys: ['f'], act: 'filter', say: 'filter the table'},
	{keys: ['c'], act: 'compare', say: 'compare with the previous range (on, off)'},
	{keys: ['g'], act: 'graph', say: 'go to the flame graph'},
	{keys: ['m'], act: 'map', say: 'switch between the map of services and the flame graph'},
	{keys: ['ArrowUp'], act: 'up', graph: true, show: '\u2191 \u2193', say: 'in the graph: to the caller, to the hottest callee'},
	{keys: ['ArrowDown'], act: 'down', graph: true},
	{keys: ['ArrowLeft'], act: 'left', graph: true, show: '\u2190 \u2192', say: 'in the graph: neighbour on the same row'},
	{keys: ['ArrowRight'], act: 'right', graph: true},
	{keys: ['Enter'], act: 'zoom', graph: true, show: 'Enter, 0', say: 'zoom to the frame; show everything'},
	{keys: ['0'], act: 'out'},
	{keys: ['/'], act: 'search', say: 'search the graph (regular expression)'},
	{keys: ['n'], act: 'next', show: 'n, N', say: 'next, previous hit'},
	{keys: ['N'], act: 'previous'},
	{keys: ['w'], act: 'sandwich', say: 'callers and callees of the function (sandwich)'},
	{keys: ['r'], act: 'invert', say: 'leaves first'},
	{keys: ['T'], act: 'tree', say: 'show the graph as a text tree'},
	{keys: ['y'], act: 'copy', say: 'copy the stack'},
	{keys: ['v'], act: 'mark', say: 'add or remove a bookmark for this view'},
	{keys: ['q'], act: 'sql', say: 'switch between SQL and the host'},
	{keys: ['Escape'], act: 'escape', show: 'Esc', say: 'back to the whole host and range'},
	{keys: ['D'], act: 'theme', say: 'system, light or dark'},
	{keys: ['?'], act: 'help', say: 'this list'},
];

function hotkeysInit(actions) {
	for (const k of HOTKEYS.filter((x) => x.say)) {
		const dt = document.createElement('dt'), dd = document.createElement('dd');
		dt.textContent = k.show || k.keys[0];
		dd.textContent = k.say;
		$('key-list').append(dt, dd);
	}
	document.addEventListener('keydown', (e) => {
		const at = e.target, typing = at.matches && at.matches('input:not([type=range]):not([type=checkbox]), textarea, select');
		if (document.querySelector('dialog[open]') || e.defaultPrevented)
			return;
		if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
			e.preventDefault();
			actions.jump();
			return;
		}
		if (e.ctrlKey || e.metaKey || e.altKey)
			return;
		if (typing) {
			if (e.key === 'Escape')
				at.blur();
			else if (at === $('search') && e.key === 'Enter')
				actions[e.shiftKey ? 'previous' : 'next']();
			return;
		}
		const free = at === document.body || (at.matches && at.matches('canvas, .scroll')), k = HOTKEYS.find((x) => x.keys.includes(e.key));
		if (!k || (k.graph && !(free && at.matches && at.matches('.scroll, .scroll *'))))
			return;
		e.preventDefault();
		actions[k.act](e.key);
	});
}
