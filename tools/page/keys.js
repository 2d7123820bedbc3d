// SPDX-License-Identifier: Apache-2.0
// keys: what each key means; the actions come from the page.

function keysInit(actions) {
	const anywhere = {'/': 'search', 'n': 'next', 'N': 'previous', '0': 'reset', 'Escape': 'escape', '?': 'help',
		'D': 'theme', 't': 'table', 'Backspace': 'back'};
	const inGraph = {'ArrowUp': 'up', 'ArrowDown': 'down', 'ArrowLeft': 'left', 'ArrowRight': 'right', 'Enter': 'zoom'};

	document.addEventListener('keydown', (e) => {
		const at = e.target, typing = at.matches && at.matches('input, textarea, select');
		if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]'))
			return;
		if (typing) {
			if (e.key === 'Escape' || e.key === 'Enter') {
				e.preventDefault();
				actions[e.key === 'Escape' ? 'escape' : e.shiftKey ? 'previous' : 'next']();
			}
			return;
		}
		const free = at === document.body || at.id === 'canvas' || at.id === 'scroll';
		const action = anywhere[e.key] || (free && inGraph[e.key]);
		if (!action)
			return;
		e.preventDefault();
		actions[action]();
	});
}
