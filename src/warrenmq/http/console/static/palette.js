// Jump anywhere and begin anything by a few letters: pages, any queue or exchange of the broker, what can be added.
import { call, lookForVhosts, may } from "./api.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { PLACES } from "./places.js";
import { href } from "./router.js";
import { Store, useStore } from "./store.js";

/** @type {Store<boolean>} */
const shown = new Store(/** @type {boolean} */ (false));
export const open = () => shown.set(true);

/** @typedef {{what: string, label: string, sub: string, to?: string, run?: () => any}} Hit */
/** @typedef {{label: string, need?: string, run: () => any}} Beginning */

/** What can be begun from anywhere. @type {Beginning[]} */
const BEGINNINGS = [
  { label: "Add a queue", run: async () => (await import("./pages/queues.js")).declare(await lookForVhosts(), "") },
  { label: "Add an exchange", run: async () => (await import("./pages/exchanges.js")).add("") },
  { label: "Set a policy", need: "policymaker", run: async () => (await import("./pages/policies.js")).set(false, "") },
  { label: "Add a user", need: "administrator", run: async () => (await import("./pages/users.js")).add() },
  { label: "Add a virtual host", need: "administrator", run: async () => (await import("./pages/vhosts.js")).add() },
];

/** @param {{more: Beginning[]}} props */
export function Palette({ more }) {
  return useStore(shown) ? html`<${Box} more=${more} />` : null;
}

/** @param {{more: Beginning[]}} props */
function Box({ more }) {
  const box = useRef(/** @type {any} */ (null));
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [named, setNamed] = useState(/** @type {Hit[]} */ ([]));
  useLayoutEffect(() => { box.current.showModal(); }, []); // at once: what is typed next belongs to it
  useEffect(() => {
    let gone = false;
    const timer = setTimeout(async () => {
      const query = `?page=1&page_size=12&columns=name,vhost&name=${encodeURIComponent(text)}`;
      const [queues, exchanges] = await Promise.all(["queues", "exchanges"].map(kind => call("GET", `/${kind}${query}`).catch(() => ({ items: [] }))));
      if (gone) return;
      const hit = (/** @type {string} */ what, /** @type {string} */ kind) => (/** @type {any} */ row) =>
        ({ what, label: row.name || "(default)", sub: row.vhost, to: href([kind, row.vhost, row.name || "amq.default"]) });
      const begins = (/** @type {Hit} */ one) => one.label.toLowerCase().startsWith(text.toLowerCase()) ? 0 : 1; // these are meant
      setNamed([...queues.items.map(hit("queue", "queues")), ...exchanges.items.map(hit("exchange", "exchanges"))].sort((one, other) => begins(one) - begins(other)));
    }, text ? 80 : 0);
    return () => { gone = true; clearTimeout(timer); };
  }, [text]);
  const wanted = text.toLowerCase();
  const pages = PLACES.flatMap(group => group.places).filter(one => may(one.need ?? "management") && one.label.toLowerCase().includes(wanted))
    .map(one => ({ what: "page", label: one.label, sub: "", to: href([one.id]) }));
  const deeds = [...BEGINNINGS, ...more].filter(one => may(one.need ?? "management") && one.label.toLowerCase().includes(wanted)).map(one => ({ what: "action", sub: "", ...one }));
  /** @type {Hit[]} */
  const hits = text ? [...named, ...pages, ...deeds] : [...pages, ...deeds, ...named];
  const choose = (/** @type {Hit | undefined} */ hit) => {
    if (!hit) return;
    box.current.close();
    if (hit.run) hit.run(); else location.hash = hit.to ?? "";
  };
  const pressed = (/** @type {any} */ event) => {
    if (event.key === "ArrowDown") setAt(n => Math.min(n + 1, hits.length - 1));
    else if (event.key === "ArrowUp") setAt(n => Math.max(n - 1, 0));
    else if (event.key === "Enter") choose(hits[at]);
    else return;
    event.preventDefault();
  };
  useEffect(() => { box.current.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }); }, [at]);
  return html`<dialog class="palette" ref=${box} onClose=${() => shown.set(false)} aria-label="Jump">
    <input role="combobox" aria-expanded="true" aria-controls="hits" aria-activedescendant=${hits[at] ? `hit-${at}` : undefined} aria-label="Jump to" placeholder="Jump to…"
      value=${text} onInput=${(/** @type {any} */ event) => { setText(event.target.value); setAt(0); }} onKeyDown=${pressed} />
    <ul id="hits" role="listbox" aria-label="Where to">${hits.map((hit, n) => html`<li id=${`hit-${n}`} role="option" aria-selected=${n === at} onClick=${() => choose(hit)}>
      <span class="soft">${hit.what}</span><b>${hit.label}</b><small class="soft">${hit.sub}</small></li>`)}</ul><p class="keys soft"><kbd>↑</kbd> <kbd>↓</kbd> choose <kbd>Enter</kbd> go <kbd>Esc</kbd> close <span>Ctrl K or / opens this anywhere</span></p></dialog>`;
}
