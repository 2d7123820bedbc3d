// SPDX-License-Identifier: Apache-2.0
// keys: what each key means; the actions come from the page. The list that `?` shows is this table.

const KEYS = [ // keys, action, in words; graph: only while the graph has the keyboard
	{keys: ['ArrowUp'], act: 'up', graph: true, show: '\u2191 \u2193', say: 'to the frame above, to the frame below'},
	{keys: ['ArrowDown'], act: 'down', graph: true},
	{keys: ['ArrowLeft'], act: 'left', graph: true, show: '\u2190 \u2192', say: 'neighbour on the same row'},
	{keys: ['ArrowRight'], act: 'right', graph: true},
	{keys: ['Enter'], act: 'zoom', graph: true, show: 'Enter, click', say: 'zoom to the frame'},
	{keys: ['Backspace'], act: 'back', say: 'back to the previous view (like the browser\u2019s Back)'},
	{keys: ['Escape'], act: 'escape', show: 'Esc', say: 'clear the search, then show everything'},
	{keys: ['0'], act: 'reset', say: 'show everything (reset)'},
	{keys: ['/'], act: 'search', say: 'search (regular expression)'},
	{keys: ['n'], act: 'next', show: 'n, N', say: 'next, previous hit, hottest first'},
	{keys: ['N'], act: 'previous'},
	{keys: ['i'], act: 'flame', say: 'root above or below (icicle, flame)'},
	{keys: ['r'], act: 'invert', say: 'leaves first, their callers below (inverted)'},
	{keys: ['s'], act: 'sandwich', say: 'the function\u2019s callers and callees (sandwich)'},
	{keys: ['f'], act: 'focus', say: 'show only stacks through the function'},
	{keys: ['x'], act: 'hide', show: 'x, X', say: 'hide the function; leave out stacks through it'},
	{keys: ['X'], act: 'drop'},
	{keys: ['m'], act: 'merge', say: 'join recursion'},
	{keys: ['u'], act: 'runtime', show: 'u, k', say: 'fold frames of runtimes and libc; of the kernel'},
	{keys: ['k'], act: 'kernel'},
	{keys: ['a'], act: 'start', show: 'a, w', say: 'fold start-up code (_start, \u2026); show idle waits'},
	{keys: ['w'], act: 'idle'},
	{keys: ['g'], act: 'group', say: 'group by container and process, container, process, thread, nothing'},
	{keys: ['c'], act: 'colour', say: 'colour by package, origin, module, change'},
	{keys: ['d'], act: 'sides', diff: true, say: 'widths show B, A, the change, what is gone'},
	{keys: ['v'], act: 'type', say: 'next kind of profile'},
	{keys: ['b'], act: 'brush', say: 'go to the time range; arrow keys move its ends'},
	{keys: ['t'], act: 'table', show: 't, T, l', say: 'go to the functions, the tree, the lines of the function'},
	{keys: ['T'], act: 'tree'},
	{keys: ['l'], act: 'lines'},
	{keys: ['y'], act: 'copy', say: 'copy the stack'},
	{keys: ['e'], act: 'svg', show: 'e, E', say: 'save as SVG, as PNG'},
	{keys: ['E'], act: 'png'},
	{keys: ['D'], act: 'theme', say: 'system, light or dark'},
	{keys: ['?'], act: 'help', say: 'this list'},
];

function keysInit(actions, diff) {
	const list = $('key-list'), keys = KEYS.filter((x) => diff || !x.diff);
	for (const k of keys.filter((x) => x.say)) {
		const dt = document.createElement('dt'), dd = document.createElement('dd');
		dt.textContent = k.show || k.keys[0];
		dd.textContent = k.say;
		list.append(dt, dd);
	}
	document.addEventListener('keydown', (e) => {
		const at = e.target, typing = at.matches && at.matches('input, textarea, select');
		if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || document.querySelector('dialog[open]'))
			return;
		if (typing) {
			if (at === $('search') && (e.key === 'Escape' || e.key === 'Enter')) {
				e.preventDefault();
				actions[e.key === 'Escape' ? 'escape' : e.shiftKey ? 'previous' : 'next']();
			} else if (e.key === 'Escape') {
				actions.graph();
			}
			return;
		}
		const free = at === document.body || (at.matches && at.matches('canvas, .scroll'));
		const k = keys.find((x) => x.keys.includes(e.key));
		if (!k || (k.graph && !free))
			return;
		e.preventDefault();
		actions[k.act]();
	});
}
