// The topology as a drawn graph: type a key, and its path lights up.
import { at, call, exchangeInPath, oneVhost } from "../api.js";
import { curl, inVhost, sh } from "../commands.js";
import { Commands } from "../dialogs.js";
import { number, rate, short } from "../format.js";
import { around, drawn, edgeId, flowing, lit, placed } from "../graph.js";
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { useLive } from "../live.js";
import { href, setQuery } from "../router.js";
import { Card, Empty, Head, Tag, Trouble } from "../ui.js";

const NONE = /** @type {any[]} */ ([]);
const READABLE = 0.6, SMALLEST = 0.2, LARGEST = 2.5; // of the drawing's own size
const MOST = 120; // nodes that are drawn without a filter

/** @param {{route: import("../router.js").Route}} props */
export function Page({ route }) {
  const { query } = route;
  const vhost = oneVhost(query);
  const { data: exchanges, problem } = useLive(at`exchanges/${vhost}` + "?columns=name,type,arguments,policy");
  const { data: allowed, problem: forbidden } = useLive(at`policies/${vhost}` + "?columns=name,definition");
  const policies = forbidden ? NONE : allowed; // who may not see policies sees what is declared
  const { data: queues } = useLive(at`queues/${vhost}` + "?columns=name,type,arguments,effective_policy_definition,messages");
  const { data: flow } = useLive(at`flow/${vhost}`);
  const { data: bindings } = useLive(at`bindings/${vhost}`);
  const [explained, setExplained] = useState(/** @type {any} */ (null));
  const [wrong, setWrong] = useState(/** @type {import("../api.js").Problem | null} */ (null));
  const asked = query.exchange !== undefined;
  const path = at`exchanges/${vhost}/${exchangeInPath(query.exchange ?? "")}/explain?routing_key=${query.key ?? ""}` + (query.headers ? `&headers=${encodeURIComponent(query.headers)}` : "");
  useEffect(() => {
    let gone = false;
    if (!asked) { setExplained(null); return undefined; }
    call("GET", path).then(found => { if (!gone) { setExplained(found); setWrong(null); } }, error => { if (!gone) { setExplained(null); setWrong(error); } });
    return () => { gone = true; };
  }, [path, asked, bindings]);
  const way = useMemo(() => lit(explained?.way), [explained]);
  const byName = [...new Set([...(flow?.steps ?? []).filter((/** @type {any} */ one) => one.how === "default").map((/** @type {any} */ one) => one.destination),
    ...[...way.edges].filter(edge => edge.endsWith(" default")).map(edge => edge.slice(edge.indexOf(" q:") + 3, -8))])].sort();
  const shape = JSON.stringify([byName, exchanges?.map((/** @type {any} */ one) => [one.name, one.arguments, one.policy]), policies, queues?.map((/** @type {any} */ one) => [one.name, one.arguments, one.effective_policy_definition]), bindings, query.find, [...way.nodes]]);
  const whole = useMemo(() => exchanges && queues && bindings && policies ? drawn(exchanges, queues, bindings, policies, byName) : null, [shape]);
  const graph = useMemo(() => whole && around(whole, query.find ?? "", way.nodes, MOST), [shape]);
  const change = (/** @type {string} */ name) => (/** @type {any} */ event) => setQuery({ [name]: event.target.value, ...(name === "exchange" ? {} : { exchange: query.exchange ?? "" }) });
  const names = (exchanges ?? []).map((/** @type {any} */ one) => one.name);
  return html`<${Head} title="Topology" sub=${`Exchanges, bindings and queues of vhost ${vhost}.`}>
      <dl class="legend"><div><dt><svg viewBox="0 0 40 10" aria-hidden="true"><path class="edge" d="M0 5H40" /></svg></dt><dd>binding</dd></div><div><dt><svg viewBox="0 0 40 10" aria-hidden="true"><path class="edge dead" d="M0 5H40" /></svg></dt><dd>dead letters</dd></div>
        <div><dt><svg viewBox="0 0 40 10" aria-hidden="true"><path class="edge alternate" d="M0 5H40" /></svg></dt><dd>alternate exchange</dd></div></dl><//>
    <${Trouble} problem=${problem} />
    <${Card} title="Where would a message go?"><div class="fields">
      <div class="field"><label for="t-exchange">Exchange</label><select id="t-exchange" value=${asked ? query.exchange || "amq.default" : " "} onChange=${change("exchange")}>
        <option value=" " disabled>choose one</option>${names.map((/** @type {string} */ name) => html`<option value=${name || "amq.default"}>${name || "(default)"}</option>`)}</select></div>
      <div class="field"><label for="t-key">Routing key</label><input id="t-key" value=${query.key ?? ""} onInput=${change("key")} placeholder="order.new.eu" spellcheck="false" /></div>
      <div class="field"><label for="t-headers">Headers</label><input id="t-headers" value=${query.headers ?? ""} onChange=${change("headers")} placeholder=${'{"kind": "order"}'} spellcheck="false" /></div>
      <div class="field"><label for="t-find">Draw what is around</label><input id="t-find" type="search" value=${query.find ?? ""} onInput=${(/** @type {any} */ event) => setQuery({ find: event.target.value })} placeholder="a name" /></div></div>
      <${Trouble} problem=${wrong?.status === 404 ? new Error(`There is no exchange '${query.exchange}' in vhost ${vhost}.`) : wrong} />
      ${explained && html`<${Verdict} explained=${explained} said=${way.said} />
        <${Commands} warren=${sh`warren explain ${query.exchange === "amq.default" ? "" : query.exchange} ${query.key ?? ""}` + headerWords(query.headers) + inVhost(vhost)} curl=${curl({ method: "GET", path })} />`}<//>
    ${!graph && !problem && html`<p class="soft" role="status" aria-busy="true">drawing what is declared in ${vhost}…</p>`}
    ${graph && flow && !flow.whole && html`<p class="hint">Messages take more than 16,384 different ways through this broker: what moves along each edge is not known.</p>`}
    ${graph && (graph.nodes.length ? html`<${Drawing} graph=${graph} way=${way} vhost=${vhost} queues=${queues} flow=${flow} />
      ${whole && graph.nodes.length < whole.nodes.length && html`<p class="soft">${number(graph.nodes.length)} of ${number(whole.nodes.length)} are drawn. Name what you look for above.</p>`}`
      : html`<${Card}><${Empty} title="Nothing to draw" text="There are no queues and no exchanges of your own in this virtual host yet."><a href=${href(["queues"], { vhost })}>Add a queue</a><//><//>`)}`;
}

/** @param {{explained: any, said: any[]}} props */
function Verdict({ explained, said }) {
  const { queues, waits_in } = explained;
  return html`${queues.length + waits_in.length ? html`<p class="fine" role="status">It reaches ${queues.length ? `${queues.length === 1 ? "queue" : "queues"} ${queues.join(", ")}` : "no queue yet"}${waits_in.length ? `; it waits in ${waits_in.join(", ")}` : ""}.</p>`
      : html`<p class="problem" role="status">It reaches no queue: ${said.find(one => one.ends)?.lines[0] ?? "nothing fits"}.</p>`}
    <ul class="timeline">${said.map(step => html`<li class=${step.ends ? "end" : ""}><b>${step.exchange || "(default)"}</b> <${Tag}>${step.type}<//>${step.lines.map((/** @type {string} */ line) => html`<div class="soft">${line}</div>`)}</li>`)}</ul>`;
}

/** @param {{graph: any, way: any, vhost: string, queues: any[], flow: any}} props */
function Drawing({ graph, way, vhost, queues, flow }) {
  const { places, ways, width, height } = useMemo(() => placed(graph), [graph]);
  const rates = flow?.whole ? flowing(flow.steps, graph.edges) : new Map();
  const box = useRef(/** @type {any} */ (null));
  const [scale, setScale] = useState(1);
  const fit = () => Math.min(1, Math.max(SMALLEST, (box.current.clientWidth - 2) / width));
  useEffect(() => setScale(fit() >= READABLE ? fit() : 1), [places]); // all of it where that can still be read
  useEffect(() => { // where it matters is in the middle: the path, or what most is bound to
    const ends = graph.edges.flatMap((/** @type {any} */ edge) => [edge.from, edge.to]);
    const most = [...new Set(ends)].map(id => [id, ends.filter((/** @type {any} */ one) => one === id).length]).sort((one, other) => other[1] - one[1])[0]?.[0];
    const place = places.get([...way.nodes].find(id => places.has(id)) ?? most);
    if (place) box.current.scrollTo(place.x * scale - box.current.clientWidth / 3, place.y * scale - box.current.clientHeight / 2);
  }, [places, way, scale]);
  const counts = new Map(queues.map(one => ["q:" + one.name, one.messages]));
  const some = way.nodes.size > 0;
  return html`<div class="drawing"><div class="segments" role="group" aria-label="size of the drawing"><button aria-label="smaller" disabled=${scale <= SMALLEST} onClick=${() => setScale(Math.max(SMALLEST, scale / 1.25))}>−</button><button onClick=${() => setScale(fit())}>Fit</button><button aria-label="larger" disabled=${scale >= LARGEST} onClick=${() => setScale(Math.min(LARGEST, scale * 1.25))}>+</button></div>
    <div ref=${box} class="graph" tabindex="0" role="region" aria-label="the topology, drawn"><svg width=${width * scale} height=${height * scale} viewBox=${`0 0 ${width} ${height}`}>
    <defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" markerWidth="10" markerHeight="10" orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" class="arrow" /></marker></defs>
    ${graph.edges.map((/** @type {any} */ edge, /** @type {number} */ n) => {
      const found = ways.get(n);
      const on = way.edges.has(edgeId(edge));
      const flowed = rates.get(edgeId(edge));
      return found && html`<g class=${some && !on ? "dim" : ""} key=${edgeId(edge)}>
        <path class=${`edge ${edge.kind} ${on ? "lit" : ""}`} data-edge=${`${edge.from} ${edge.to}`} d=${curve(found.points)} marker-end="url(#arrow)"><title>${edge.words.join(", ")}</title></path>
        ${(edge.words.length > 0 || flowed) && html`<text class="sub" text-anchor="middle" x=${found.x} y=${found.y - 3}>${[edge.words.length && cut(edge.words[0], 18) + (edge.words.length > 1 ? ` +${edge.words.length - 1}` : ""), flowed && rate(flowed)].filter(Boolean).join(" · ")}</text>`}</g>`;
    })}
    ${graph.nodes.map((/** @type {any} */ node) => {
      const place = places.get(node.id);
      const on = way.nodes.has(node.id);
      const sub = node.kind === "queue" ? `${short(counts.get(node.id) ?? 0)} message${counts.get(node.id) === 1 ? "" : "s"}` : node.type;
      return html`<a key=${node.id} href=${href([node.kind === "queue" ? "queues" : "exchanges", vhost, node.name || "amq.default"])} class=${`${node.kind} ${on ? "lit" : some ? "dim" : ""}`} data-node=${`${node.kind} ${node.name}`}>
        <rect class="box" x=${place.x - place.width / 2} y=${place.y - 23} width=${place.width} height="46" rx=${node.kind === "queue" ? 6 : 23} />
        <text text-anchor="middle" x=${place.x} y=${place.y - 2}>${cut(node.name || "(default)", 26)}</text>
        <text class="sub" text-anchor="middle" x=${place.x} y=${place.y + 14}>${cut(sub, 26)}</text></a>`;
    })}</svg></div></div>`;
}

/** Headers as warren takes them.
 * @param {string | undefined} text */
function headerWords(text) {
  try {
    return Object.entries(JSON.parse(text || "{}")).map(([name, value]) => sh` -H ${typeof value === "string" ? `${name}=${value}` : `${name}:=${JSON.stringify(value)}`}`).join("");
  } catch { return ""; }
}

/** @param {string} text @param {number} most */
const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;

/** @param {{x: number, y: number}[]} points */
function curve(points) {
  let path = `M${points[0].x} ${points[0].y}`;
  for (let n = 1; n < points.length; n++) {
    const [one, other] = [points[n - 1], points[n]];
    const middle = (one.x + other.x) / 2;
    path += ` C${middle} ${one.y} ${middle} ${other.y} ${other.x} ${other.y}`;
  }
  return path;
}
