// The frame: who is logged in, where one is, what else there is.
import { ask, logOut, lookForVhosts, may, oneVhost, vhosts, who } from "./api.js";
import { colours } from "./chart.js";
import { Dialogs, note } from "./dialogs.js";
import { html, render, useEffect, useState } from "./html.js";
import { forget, state, waiting } from "./live.js";
import { Login } from "./login.js";
import { Palette, open as openPalette } from "./palette.js";
import { go, href, setQuery, useRoute } from "./router.js";
import { useStore } from "./store.js";
import { Card, Empty, Head } from "./ui.js";
import { ONE_VHOST, PLACES, pageOf } from "./places.js";

const themes = ["auto", "light", "dark"];

/** @param {string} theme */
function paint(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
  colours.set(colours.value + 1);
}
paint(themes.includes(localStorage.getItem("theme") ?? "") ? localStorage.getItem("theme") ?? "auto" : "auto");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => colours.set(colours.value + 1));

function Vhosts() {
  const { path, query } = useRoute();
  const all = useStore(vhosts) ?? [];
  const one = ONE_VHOST.includes(path[0]); // of such a page there is none for all of them
  const choose = (/** @type {any} */ event) => {
    const vhost = event.target.value;
    if (path.length > 1) go([path[0]], { vhost });
    else setQuery({ vhost, page: "" });
  };
  const inPath = ["queues", "exchanges"].includes(path[0]) && path.length > 2 ? path[1] : "";
  return html`<label class="vhost"><span>vhost</span><select aria-label="virtual host" value=${inPath || (one ? oneVhost(query) : query.vhost || "")} onChange=${choose}>
    ${!one && html`<option value="">all</option>`}${all.map(name => html`<option value=${name}>${name}</option>`)}</select></label>`;
}

function Frame() {
  const user = useStore(who);
  const live = useStore(state);
  const busy = useStore(waiting);
  const route = useRoute();
  const [wide, setWide] = useState(false);
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? "auto");
  const known = useStore(vhosts);
  useEffect(() => { lookForVhosts(); }, []);
  useEffect(() => setWide(false), [route]);
  useEffect(() => {
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      const typing = /** @type {any} */ (event.target).matches?.("input, textarea, select");
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) || event.key === "/" && !typing) {
        event.preventDefault();
        openPalette();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  const Page = pageOf(route);
  const here = route.path[0] ?? "overview";
  const title = PLACES.flatMap(group => group.places).find(one => one.id === here)?.label ?? "Warren";
  useEffect(() => { document.title = `${route.path[2] ?? title} · Warren`; }, [title, route.path[2]]);
  const leave = async () => { await logOut().catch(error => note(error.message, true)); forget(); vhosts.set(undefined); };
  const wear = (/** @type {string} */ next) => { paint(next); setTheme(next); };
  const turn = () => wear(themes[(themes.indexOf(theme) + 1) % 3]);
  return html`<a class="skip" href="#main" onClick=${(/** @type {any} */ event) => { event.preventDefault(); document.querySelector("main")?.focus(); }}>Skip to the content</a>
  <div class=${"frame" + (wide ? " open" : "")}>
    <aside><a class="brand" href=${href(["overview"])}><img src="console/warren.svg" alt="" width="28" height="28" /> Warren</a>
      <nav aria-label="Main">${PLACES.map(group => {
        const places = group.places.filter(one => may(one.need ?? "management"));
        return places.length > 0 && html`<div class="group"><h2>${group.label}</h2>${places.map(one =>
          html`<a href=${href([one.id], one.vhost && route.query.vhost ? { vhost: route.query.vhost } : {})} aria-current=${one.id === here ? "page" : undefined}>
            <svg viewBox="0 0 20 20" aria-hidden="true"><path d=${one.icon} /></svg>${one.label}</a>`)}</div>`;
      })}</nav>
      <p class="soft foot">Warren ${user?.version}<br />as RabbitMQ ${user?.rabbitmq_version}</p></aside>
    <div class="side">
      <header class="top"><button class="quiet burger" aria-label="menu" aria-expanded=${wide} onClick=${() => setWide(!wide)}>☰</button>
        <button class="jump" onClick=${openPalette}><span>Jump<span class="wide"> to a queue or page, or do something</span></span><kbd>Ctrl K</kbd></button>
        <${Vhosts} />
        <span class=${"live " + live} title=${live === "live" ? "figures arrive as they change" : "waiting for the broker"} role="status">${live}</span>
        <button class="quiet" onClick=${turn} aria-label=${`colours: ${theme}`} title=${`colours: ${theme}`}>${theme === "auto" ? "◐" : theme === "light" ? "☀" : "☾"}</button>
        <details class="menu me"><summary aria-label=${`account ${user?.user}`}>${user?.user}</summary><div class="menu-box">
          <p><b>${user?.user}</b><br /><span class="soft">${user?.tags.join(", ")}</span></p>
          <p class="soft">${user?.node}<br />times are in ${Intl.DateTimeFormat().resolvedOptions().timeZone}</p><button onClick=${leave}>Log out</button></div></details></header>
      <main id="main" tabindex="-1" aria-busy=${busy} key=${route.path.join("/")}>${!Page ? html`<${Head} title="There is nothing here" /><${Card}><${Empty} title="The address names no page of the console" text="Choose one in the menu, or jump to a queue with Ctrl K."><a href=${href(["overview"])}>To the overview</a><//><//>`
        : known ? html`<${Page} route=${route} />` : html`<p class="soft" aria-busy="true">…</p>`}</main>
    </div></div>
  <${Palette} more=${[{ label: "Log out", run: leave }, ...themes.map(one => ({ label: `Colours: ${one}`, run: () => wear(one) }))]} />`;
}

function App() {
  const user = useStore(who);
  useEffect(() => { ask(); }, []);
  return html`${user === undefined ? null : user ? html`<${Frame} key=${user.user} />` : html`<${Login} />`}<${Dialogs} />`;
}

render(html`<${App} />`, /** @type {Element} */ (document.getElementById("app")));
