// The topology as nodes and edges, where they stand, and the way of a message through it. No markup here.
import { Graph, layout } from "./vendor/dagre.js";

/** @typedef {{id: string, kind: "exchange" | "queue", name: string, type: string}} Node */
/** @typedef {{from: string, to: string, kind: "binding" | "dead" | "alternate" | "default", words: string[]}} Edge */

/** @param {string} kind @param {string} name */
export const nodeId = (kind, name) => `${kind[0]}:${name}`;

/** What is declared as a graph; exchanges that nothing touches are left out.
 * @param {any[]} exchanges @param {any[]} queues @param {any[]} bindings @param {any[]} policies
 * @param {string[]} byName queues that get messages by their names */
export function drawn(exchanges, queues, bindings, policies, byName) {
  /** @type {Map<string, Node>} */
  const all = new Map();
  for (const one of exchanges) all.set(nodeId("exchange", one.name), { id: nodeId("exchange", one.name), kind: "exchange", name: one.name, type: one.type });
  for (const one of queues) all.set(nodeId("queue", one.name), { id: nodeId("queue", one.name), kind: "queue", name: one.name, type: one.type });
  /** @type {Map<string, Edge>} */
  const edges = new Map();
  const add = (/** @type {string} */ from, /** @type {string} */ to, /** @type {Edge["kind"]} */ kind, /** @type {string} */ word) => {
    if (!all.has(from) || !all.has(to)) return;
    const key = `${from} ${to} ${kind}`;
    const edge = edges.get(key) ?? { from, to, kind, words: [] };
    if (word) edge.words.push(word);
    edges.set(key, edge);
  };
  for (const one of bindings) if (one.source) {
    add(nodeId("exchange", one.source), nodeId(one.destination_type, one.destination), "binding", one.routing_key || (Object.keys(one.arguments).length ? JSON.stringify(one.arguments) : ""));
  }
  for (const one of queues) {
    const dead = one.arguments?.["x-dead-letter-exchange"] ?? one.effective_policy_definition?.["dead-letter-exchange"];
    const key = one.arguments?.["x-dead-letter-routing-key"] ?? one.effective_policy_definition?.["dead-letter-routing-key"];
    if (dead === "" && key) add(nodeId("queue", one.name), nodeId("queue", key), "dead", "dead letters");
    else if (typeof dead === "string") add(nodeId("queue", one.name), nodeId("exchange", dead), "dead", key ? `dead letters as ${key}` : "dead letters");
  }
  for (const name of byName) add(nodeId("exchange", ""), nodeId("queue", name), "default", "by name");
  const definitions = new Map(policies.map(one => [one.name, one.definition]));
  for (const one of exchanges) {
    const other = one.arguments?.["alternate-exchange"] ?? definitions.get(one.policy)?.["alternate-exchange"];
    if (other) add(nodeId("exchange", one.name), nodeId("exchange", other), "alternate", "else");
  }
  const touched = new Set([...edges.values()].flatMap(edge => [edge.from, edge.to]));
  const nodes = [...all.values()].filter(node => touched.has(node.id) || (node.kind === "queue" ? true : node.name !== "" && !node.name.startsWith("amq.")));
  return { nodes, edges: [...edges.values()] };
}

/** The part of a graph around nodes whose name has this text, and around those that are wanted anyway.
 * @param {{nodes: Node[], edges: Edge[]}} graph @param {string} text @param {Set<string>} wanted @param {number} most */
export function around(graph, text, wanted, most) {
  const near = new Set(wanted);
  for (const node of graph.nodes) if (text && node.name.toLowerCase().includes(text.toLowerCase())) near.add(node.id);
  if (!text && graph.nodes.length > most) for (const node of graph.nodes.slice(0, most)) near.add(node.id);
  if (!text && graph.nodes.length <= most) return graph;
  const kept = new Set(near);
  for (const edge of graph.edges) {
    if (near.has(edge.from) && kept.size < most * 2) kept.add(edge.to);
    if (near.has(edge.to) && kept.size < most * 2) kept.add(edge.from);
  }
  return { nodes: graph.nodes.filter(node => kept.has(node.id)), edges: graph.edges.filter(edge => kept.has(edge.from) && kept.has(edge.to)) };
}

/** Where everything stands.
 * @param {{nodes: Node[], edges: Edge[]}} graph */
export function placed(graph) {
  const made = new Graph({ multigraph: true });
  made.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 90, marginx: 20, marginy: 20 });
  made.setDefaultEdgeLabel(() => ({}));
  for (const node of graph.nodes) made.setNode(node.id, { width: Math.min(240, Math.max(130, node.name.length * 8 + 36)), height: 46 });
  graph.edges.forEach((edge, n) => made.setEdge(edge.from, edge.to, { width: Math.min(120, Math.max(40, (edge.words[0]?.length ?? 0) * 6.500)), height: 14, labelpos: "c" }, String(n)));
  layout(made);
  const places = new Map(graph.nodes.map(node => [node.id, made.node(node.id)]));
  const ways = new Map(made.edges().map(edge => [Number(edge.name), made.edge(edge)]));
  return { places, ways, width: made.graph().width ?? 100, height: made.graph().height ?? 100 };
}

/** How many messages a second take each edge, by the edge as it is drawn.
 * @param {any[]} steps of /flow @param {any[]} edges @returns {Map<string, number>} */
export function flowing(steps, edges) {
  /** @type {Map<string, number>} */
  const found = new Map();
  const dead = new Map(edges.filter(edge => edge.kind === "dead").map(edge => [edge.from, edgeId(edge)]));
  for (const one of steps) {
    const from = nodeId(one.source_type, one.source), to = nodeId(one.destination_type, one.destination);
    const kind = one.how === "alternate" || one.how === "default" ? one.how : "binding";
    const id = one.how === "dead_letter" ? dead.get(from) : edgeId({ from, to, kind });
    if (id && one.rate !== null) found.set(id, (found.get(id) ?? 0) + one.rate);
  }
  return found;
}

/** @param {{from: string, to: string, kind: string}} edge */
export const edgeId = edge => `${edge.from} ${edge.to} ${edge.kind}`;

/** What a message lights up: nodes, edges, and what is to be said at each exchange.
 * @param {any} way */
export function lit(way) {
  const nodes = new Set();
  const edges = new Set();
  /** @type {{exchange: string, type: string, lines: string[], ends: boolean}[]} */
  const said = [];
  const visit = (/** @type {any} */ step) => {
    const here = nodeId("exchange", step.exchange);
    nodes.add(here);
    /** @type {string[]} */
    const lines = [];
    for (const one of step.reached) {
      const there = nodeId(one.to, one.name);
      nodes.add(there);
      edges.add(`${here} ${there} ${one.how === "alternate" || one.how === "default" ? one.how : "binding"}`);
      lines.push(`reaches ${one.to} '${one.name}'` + (one.how === "binding" ? ` by binding '${one.key}'` : one.how === "default" ? " by its name" : ` as ${one.how}`));
    }
    if (step.note) lines.push(step.note);
    if (step.missing_alternate) lines.push(`its alternate exchange '${step.missing_alternate}' does not exist`);
    for (const one of step.missed.slice(0, 5)) lines.push(`not ${one.to} '${one.name}' (binding '${one.key}'): ${one.reason}`);
    if (step.missed.length > 5) lines.push(`and ${step.missed.length - 5} more bindings do not fit`);
    said.push({ exchange: step.exchange, type: step.type, lines, ends: step.reached.length === 0 });
    for (const one of step.reached) if (one.way) visit(one.way);
  };
  if (way) visit(way);
  return { nodes, edges, said };
}
