// SPDX-License-Identifier: Apache-2.0
// tabs: a row of tabs, for mouse and arrow keys; `own`: existing buttons, otherwise they are made from `names`.

function tabsShow(box, names, now, onPick, own) {
	const tabs = own || names.map((name) => Object.assign(document.createElement('button'), {type: 'button', textContent: name}));
	tabs.forEach((tab, i) => {
		tab.setAttribute('role', 'tab');
		tab.setAttribute('aria-selected', i === now);
		tab.tabIndex = i === now ? 0 : -1;
		tab.onclick = () => onPick(i);
		tab.onkeydown = (e) => {
			const to = {ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1}[e.key];
			if (to === undefined || !tabs[to])
				return;
			e.preventDefault();
			onPick(to);
			box.querySelectorAll('[role=tab]')[to].focus();
		};
	});
	if (!own)
		box.replaceChildren(...tabs);
	if (tabs[now] && box.scrollWidth > box.clientWidth) // on a phone: the chosen one in the middle
		box.scrollLeft = tabs[now].offsetLeft - box.offsetLeft - (box.clientWidth - tabs[now].offsetWidth) / 2;
}
