// The pages, in the order of the menu: a module each, loaded when somebody goes there.
import { html, useEffect, useState } from "./html.js";
import { Trouble } from "./ui.js";

/** @typedef {{id: string, label: string, icon: string, need?: string, vhost?: boolean, load: () => Promise<{Page: any}>}} Place */

/** Those that show one virtual host at a time. */
export const ONE_VHOST = ["topology", "whatif", "dead", "delayed"];

/** @type {{label: string, places: Place[]}[]} */
export const PLACES = [
  { label: "Broker", places: [
    { id: "overview", label: "Overview", icon: "M3 16V9m5 7V4m5 12v-5m4 5V7", load: () => import("./pages/overview.js") },
    { id: "nodes", label: "Nodes and cluster", need: "monitoring", icon: "M3 3h6v6H3zM11 11h6v6h-6zM6 9v5h5M14 11V6H9", load: () => import("./pages/nodes.js") },
    { id: "connections", label: "Connections", vhost: true, icon: "M7 13 13 7M8 6l2-2a3.500 3.500 0 0 1 5 5l-2 2M12 14l-2 2a3.500 3.500 0 0 1-5-5l2-2", load: () => import("./pages/connections.js") },
    { id: "channels", label: "Channels", vhost: true, icon: "M3 6h14M3 10h14M3 14h14", load: () => import("./pages/channels.js") },
    { id: "consumers", label: "Consumers", vhost: true, icon: "M10 3v9m0 0-4-4m4 4 4-4M4 16h12", load: () => import("./pages/consumers.js") },
    { id: "exchanges", label: "Exchanges", vhost: true, icon: "M4 7h11l-3-3m4 9H5l3 3", load: () => import("./pages/exchanges.js") },
    { id: "queues", label: "Queues and streams", vhost: true, icon: "M4 4h12v3H4zM4 9h12v3H4zM4 14h12v2H4z", load: () => import("./pages/queues.js") },
  ] },
  { label: "Find and mend", places: [
    { id: "topology", label: "Topology", vhost: true, icon: "M5 5h3v3H5zM12 3h3v3h-3zM12 13h3v3h-3zM8 7l4-2M8 8l4 6", load: () => import("./pages/topology.js") },
    { id: "where", label: "Where is my message", icon: "M9 3a6 6 0 1 1 0 12A6 6 0 0 1 9 3zm4.500 10.500L17 17", load: () => import("./pages/where.js") },
    { id: "whatif", label: "What if", vhost: true, icon: "M4 5h5l3 5h4m0 0-2.500-2.500M16 10l-2.500 2.500M4 15h5l1.500-2.500", load: () => import("./pages/whatif.js") },
    { id: "dead", label: "Dead letters", vhost: true, icon: "M3 5h14v10H3zM3 6l7 5 7-5", load: () => import("./pages/dead.js") },
    { id: "delayed", label: "Delayed messages", vhost: true, icon: "M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM10 6v4l3 2", load: () => import("./pages/delayed.js") },
    { id: "ledger", label: "Ledger", vhost: true, icon: "M5 3h10v14H5zM8 7h4M8 10h4M8 13h4", load: () => import("./pages/ledger.js") },
  ] },
  { label: "Administration", places: [
    { id: "users", label: "Users", need: "administrator", icon: "M10 4a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM4 17c0-3.500 2.500-5 6-5s6 1.500 6 5", load: () => import("./pages/users.js") },
    { id: "vhosts", label: "Virtual hosts", icon: "M3 4h14v5H3zM3 11h14v5H3zM6 6.500h1M6 13.500h1", load: () => import("./pages/vhosts.js") },
    { id: "policies", label: "Policies", vhost: true, icon: "M10 3l6 2v5c0 4-3 6-6 7-3-1-6-3-6-7V5z", load: () => import("./pages/policies.js") },
    { id: "definitions", label: "Definitions", need: "administrator", icon: "M6 3h6l3 3v11H6zM8 9h5M8 12h5", load: () => import("./pages/definitions.js") },
    { id: "log", label: "Log", need: "administrator", icon: "M4 4h12v12H4zM7 7h6M7 10h6M7 13h3", load: () => import("./pages/log.js") },
    { id: "api", label: "API", icon: "M7 6 3 10l4 4m6-8 4 4-4 4", load: () => import("./pages/api.js") },
  ] },
];

const places = new Map(PLACES.flatMap(group => group.places).map(one => [one.id, one]));
/** @type {Map<string, any>} */
const loaded = new Map();

/** What shows a route: a component, or nothing where there is no such place. It is the same one while its module comes and
 * when it is here: another one would begin anew, and forget what was typed into it.
 * @param {import("./router.js").Route} route */
export const pageOf = route => places.has(route.path[0] ?? "overview") ? Shown : null;

/** @param {{route: import("./router.js").Route}} props */
function Shown({ route }) {
  const id = route.path[0] ?? "overview";
  const [, again] = useState(0);
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
  const Page = loaded.get(id);
  useEffect(() => {
    setProblem(null);
    /** @type {any} */
    let timer = null;
    const later = () => { setProblem(new Error("The broker does not answer. This page comes when it does.")); timer = setTimeout(load, 2000); };
    const load = () => places.get(id)?.load().then(module => { loaded.set(id, module.Page); again(n => n + 1); }, later);
    if (!loaded.has(id)) load();
    return () => clearTimeout(timer);
  }, [id]);
  return Page ? html`<${Page} key=${id} route=${route} />` : problem ? html`<${Trouble} problem=${problem} />` : html`<p class="soft" aria-busy="true">…</p>`;
}
