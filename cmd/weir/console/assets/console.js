// Keys in a list of cards: j and k, or the arrows, go to the next and the
// previous. They work only while the focus is in the list; all else needs no script.
"use strict";
for (const list of document.querySelectorAll("[data-keys]")) {
  list.addEventListener("keydown", (event) => {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    const links = [...list.querySelectorAll("h2 a, h3 a")];
    const next = links[links.indexOf(document.activeElement) + step];
    if (next) {
      next.focus();
      event.preventDefault();
    }
  });
}
