// The small parts that every page is made of.
import { html } from "./html.js";
import { href } from "./router.js";
import { pretty } from "./format.js";

/** @param {{title: any, sub?: any, children?: any}} props */
export const Head = ({ title, sub, children }) => html`<header class="head"><div><h1>${title}</h1>
  ${sub && html`<p class="soft">${sub}</p>`}</div><div class="actions">${children}</div></header>`;

/** @param {{title?: any, class?: string, children?: any, aside?: any}} props */
export const Card = ({ title, children, aside, class: name }) => html`<section class=${"card " + (name ?? "")}>
  ${title && html`<div class="card-head"><h2>${title}</h2>${aside}</div>`}${children}</section>`;

/** @param {{title: string, text: any, children?: any}} props */
export const Empty = ({ title, text, children }) => html`<div class="empty"><h2>${title}</h2><p>${text}</p>${children}</div>`;

/** @param {{problem: Error | null}} props */
export const Trouble = ({ problem }) => problem && html`<p class="problem" role="alert">${problem.message}</p>`;

/** The page of something that is not there, or not any more.
 * @param {{name: string, what: string, why: string, problem: Error & {status?: number}, path: string[], all: string}} props */
export const Missing = ({ name, what, why, problem, path, all }) => html`<${Head} title=${name} sub=${what} />
  ${problem.status === 404 ? html`<${Card}><${Empty} title=${`There is no such ${what}`} text=${why}><${Go} path=${path}>${all}<//><//><//>` : html`<${Trouble} problem=${problem} />`}`;

/** @param {{kind?: string, children?: any, title?: string}} props */
export const Tag = ({ kind, children, title }) => html`<span class=${"tag " + (kind ?? "")} title=${title}>${children}</span>`;

/** @param {{label: string, value: any, hint?: any, kind?: string}} props */
export const Stat = ({ label, value, hint, kind }) => html`<div class=${"stat " + (kind ?? "")}><dt>${label}</dt><dd>${value}${hint && html`<small>${hint}</small>`}</dd></div>`;

/** Pairs of words and values; what is undefined is left out.
 * @param {{pairs: [string, any][]}} props */
export const Facts = ({ pairs }) => html`<dl class="facts">${pairs.filter(([, value]) => value !== undefined && value !== null)
  .map(([word, value]) => html`<div><dt>${word}</dt><dd>${value}</dd></div>`)}</dl>`;

/** @param {{path: string[], query?: Record<string, any>, children?: any, class?: string}} props */
export const Go = ({ path, query, children, class: name }) => html`<a href=${href(path, query)} class=${name}>${children}</a>`;

/** @param {{value: any}} props */
export const Json = ({ value }) => value && Object.keys(value).length
  ? html`<pre class="json" tabindex="0">${pretty(value)}</pre>` : html`<span class="soft">none</span>`;

/** @param {{tabs: [string, string][], now: string, path: string[], query?: Record<string, any>}} props */
export const Tabs = ({ tabs, now, path, query }) => html`<nav class="tabs" aria-label="Parts of this page">${tabs.map(([id, label]) =>
  html`<a href=${href(path, { ...query, tab: id })} aria-current=${id === now ? "page" : undefined}>${label}</a>`)}</nav>`;

/** @param {{vhost: string, name: string}} props */
export const Queue = ({ vhost, name }) => html`<${Go} path=${["queues", vhost, name]}>${name}<//>`;

/** @param {{vhost: string, name: string}} props */
export const Exchange = ({ vhost, name }) => html`<${Go} path=${["exchanges", vhost, name || "amq.default"]}>${name || "(default)"}<//>`;

/** What arguments and policies of queues mean, in a sentence each. */
export const MEANINGS = /** @type {Record<string, string>} */ ({
  "x-message-ttl": "messages expire after so many milliseconds", "message-ttl": "messages expire after so many milliseconds",
  "x-expires": "the queue goes when nobody used it for so many milliseconds", "expires": "the queue goes when nobody used it for so many milliseconds",
  "x-max-length": "at most so many messages wait", "max-length": "at most so many messages wait",
  "x-max-length-bytes": "at most so many octets of bodies wait", "max-length-bytes": "at most so many octets of bodies wait",
  "x-overflow": "what happens beyond the limit", "overflow": "what happens beyond the limit",
  "x-dead-letter-exchange": "dead letters go there", "dead-letter-exchange": "dead letters go there",
  "x-dead-letter-routing-key": "dead letters get this key", "dead-letter-routing-key": "dead letters get this key",
  "x-max-priority": "messages have priorities up to this", "x-queue-type": "classic, quorum or stream",
  "x-single-active-consumer": "one consumer at a time, the others wait", "x-delivery-limit": "delivered so often without an ack, a message is dead",
  "delivery-limit": "delivered so often without an ack, a message is dead", "x-queue-mode": "kept only", "x-max-age": "how long a stream keeps what it has",
  "alternate-exchange": "what no binding takes goes there", "x-delayed-type": "how the exchange routes when the time has come",
});

/** @param {{value: Record<string, any>}} props */
export const Explained = ({ value }) => value && Object.keys(value).length ? html`<dl class="facts">${Object.entries(value).map(([name, one]) =>
  html`<div><dt><code>${name}</code> <small>${MEANINGS[name] ?? ""}</small></dt><dd>${typeof one === "object" ? JSON.stringify(one) : String(one)}</dd></div>`)}</dl>`
  : html`<p class="soft">none</p>`;
