// What changes something: a form or a question, the same as commands, and what came of it.
import { call } from "./api.js";
import { curl } from "./commands.js";
import { number } from "./format.js";
import { html, useLayoutEffect, useRef, useState } from "./html.js";
import { refresh } from "./live.js";
import { Store, useStore } from "./store.js";
import { MEANINGS } from "./ui.js";

/** @typedef {import("./commands.js").Action} Action */
/** @typedef {{name: string, label: string, type?: string, value?: any, options?: (string | [string, string])[],
 *   hint?: string, required?: boolean, list?: string[], rows?: number, keys?: [string, any][]}} Field
 * keys: what may be added to a JSON object by a click, each with a value to begin with
 * @typedef {{name: string, size: number, base64: string}} Chosen a file that was chosen */
/** @typedef {{title: string, text?: any, fields?: Field[], action: (values: any) => Action | Action[], verb?: string,
 *   danger?: boolean, name?: string, done?: string | ((answer: any) => string), after?: (answer: any) => void}} Deed */

/** @type {Store<Deed | null>} */
const deed = new Store(/** @type {any} */ (null));
/** @type {Store<{id: number, text: string, bad: boolean}[]>} */
const notes = new Store(/** @type {any} */ ([]));
let count = 0;

/** Ask for what is needed, show the commands, do it.
 * @param {Deed} wanted */
export const act = wanted => deed.set(wanted);

/** @param {string} text @param {boolean} [bad] */
export function note(text, bad = false) {
  const id = ++count;
  notes.set([...notes.value.slice(-3), { id, text, bad }]);
  setTimeout(() => notes.set(notes.value.filter(one => one.id !== id)), bad ? 12000 : 5000);
}

/** @param {Field} field */
function first(field) {
  if (field.value !== undefined) return field.value;
  if (field.type === "checkbox") return false;
  if (field.type === "select") return typeof field.options?.[0] === "string" ? field.options[0] : field.options?.[0]?.[0];
  return field.type === "json" ? "{}" : "";
}

/** The values of a form as an action wants them; throws where JSON is none.
 * @param {Field[]} fields @param {any} raw */
function values(fields, raw) {
  /** @type {Record<string, any>} */
  const found = {};
  for (const field of fields) {
    const value = raw[field.name];
    if (field.type === "json") found[field.name] = json(value, field.label);
    else if (field.type === "number") found[field.name] = value === "" ? undefined : Number(value);
    else found[field.name] = value;
  }
  return found;
}

/** @param {string} text @param {string} label */
function json(text, label) {
  if (!text.trim()) return {};
  try { return JSON.parse(text); } catch { throw new Error(`${label}: this is no JSON`); }
}

/** @param {{warren?: string, curl: string}} props */
export function Commands({ warren, curl: curled }) {
  return html`<details class="commands"><summary>The same on the command line</summary>
    ${warren && html`<${Copied} text=${warren} />`}
    <${Copied} text=${curled} />
    <small>warren asks the broker of WARREN_URL; curl asks for the password.${/PASSWORD/.test(curled) && " PASSWORD and PASSWORD_HASH stand for what is secret."}</small></details>`;
}

/** @param {{text: string}} props */
export function Copied({ text }) {
  const copy = () => navigator.clipboard?.writeText(text).then(() => note("copied"), () => note("not copied", true));
  return html`<div class="copied"><pre tabindex="0">${text}</pre>
    <button type="button" class="quiet" onClick=${copy} aria-label="copy the command">Copy</button></div>`;
}

/** A JSON object with one member more; what is no JSON stays as it is.
 * @param {string} text @param {string} key @param {any} sample */
function added(text, key, sample) {
  try { return JSON.stringify({ [key]: sample, ...json(text, "") }, null, 2); } catch { return text; }
}

/** @param {File | undefined} file @returns {Promise<Chosen | null>} */
async function chosen(file) {
  if (!file) return null;
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let n = 0; n < bytes.length; n += 0x8000) text += String.fromCharCode(...bytes.subarray(n, n + 0x8000));
  return { name: file.name, size: bytes.length, base64: btoa(text) };
}

/** @param {{field: Field, value: any, change: (value: any) => void}} props */
export function Input({ field, value, change }) {
  const id = "field-" + field.name;
  const common = { id, name: field.name, required: field.required, "aria-describedby": field.hint ? id + "-hint" : undefined };
  const typed = (/** @type {any} */ event) => change(event.target.value);
  let input;
  if (field.type === "checkbox") {
    input = html`<input ...${common} type="checkbox" checked=${value} onChange=${(/** @type {any} */ e) => change(e.target.checked)} />`;
  } else if (field.type === "select") {
    input = html`<select ...${common} value=${value} onChange=${typed}>${(field.options ?? []).map(one =>
      html`<option value=${typeof one === "string" ? one : one[0]}>${typeof one === "string" ? one : one[1]}</option>`)}</select>`;
  } else if (field.type === "json" || field.type === "textarea") {
    input = html`<textarea ...${common} rows=${field.rows ?? (field.type === "json" ? 3 : 5)} spellcheck="false" value=${value} onInput=${typed} />
      ${field.keys && html`<div class="chips">${field.keys.map(([key, sample]) => html`<button type="button" title=${MEANINGS[key]} onClick=${() => change(added(value, key, sample))}>+ ${key}</button>`)}</div>`}`;
  } else if (field.type === "file") {
    input = html`<input ...${common} type="file" onChange=${async (/** @type {any} */ event) => change(await chosen(event.target.files[0]))} />${value && html`<small role="status">${number(value.size)} octets of ${value.name}</small>`}`;
  } else {
    input = html`<input ...${common} type=${field.type ?? "text"} value=${value} onInput=${typed} autocomplete=${field.type === "password" ? "new-password" : "off"}
      list=${field.list ? id + "-list" : undefined} step=${field.type === "number" ? "any" : field.type === "datetime-local" ? "1" : undefined} spellcheck="false" />
      ${field.list && html`<datalist id=${id + "-list"}>${field.list.map(one => html`<option value=${one} />`)}</datalist>`}`;
  }
  return html`<div class=${"field " + (field.type ?? "text")}><label for=${id}>${field.label}</label>${input}
    ${field.hint && html`<small id=${id + "-hint"}>${field.hint}</small>`}</div>`;
}

/** @param {{wanted: Deed}} props */
function Form({ wanted }) {
  const fields = wanted.fields ?? [];
  const [raw, setRaw] = useState(() => Object.fromEntries(fields.map(field => [field.name, first(field)])));
  const [typed, setTyped] = useState("");
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const box = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => { // at once: what is typed next belongs to it
    box.current.showModal();
    const focus = box.current.querySelector("input, select, textarea") ?? box.current.querySelector("button.main");
    focus?.focus();
  }, []);
  /** @type {Action[]} */
  let actions = [];
  let wrong = "";
  try { actions = [wanted.action(values(fields, raw))].flat(); } catch (error) { wrong = /** @type {Error} */ (error).message; }
  const sure = !wanted.name || typed === wanted.name;
  const run = async (/** @type {any} */ event) => {
    event.preventDefault();
    if (wrong || !sure) return setProblem(wrong);
    setBusy(true);
    setProblem("");
    try {
      let answer = null;
      for (const action of actions) answer = await call(action.method, action.path, action.body, action.headers);
      deed.set(null);
      note(typeof wanted.done === "function" ? wanted.done(answer) : wanted.done ?? "done");
      refresh();
      wanted.after?.(answer);
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
      setBusy(false);
    }
    return undefined;
  };
  return html`<dialog ref=${box} onClose=${() => deed.set(null)} aria-labelledby="deed">
    <form onSubmit=${run}>
      <h2 id="deed">${wanted.title}</h2>
      ${wanted.text && html`<p class="soft">${wanted.text}</p>`}
      ${fields.map(field => html`<${Input} key=${field.name} field=${field} value=${raw[field.name]}
        change=${(/** @type {any} */ value) => setRaw(now => ({ ...now, [field.name]: value }))} />`)}
      ${wanted.name && html`<${Input} field=${{ name: "confirm", label: `Type ${wanted.name} to confirm` }} value=${typed} change=${setTyped} />`}
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      ${actions.map(action => html`<${Commands} warren=${action.warren} curl=${curl(action)} />`)}
      <div class="buttons"><button type="button" onClick=${() => box.current.close()}>Cancel</button>
        <button class=${wanted.danger ? "main danger" : "main"} disabled=${busy || !sure}>${wanted.verb ?? "Do it"}</button></div>
    </form></dialog>`;
}

export function Dialogs() {
  const wanted = useStore(deed);
  const said = useStore(notes);
  return html`${wanted && html`<${Form} key=${wanted.title} wanted=${wanted} />`}
    <div class="notes" role="status" aria-live="polite">${said.map(one =>
      html`<p key=${one.id} class=${one.bad ? "bad" : ""}>${one.text}</p>`)}</div>`;
}
