// The form that publishes a message: key, properties, headers, a body from the keyboard or a file.
import { at, exchangeInPath } from "./api.js";
import { inVhost, sh } from "./commands.js";
import { act, note } from "./dialogs.js";
import { html } from "./html.js";

/** @param {string} vhost @param {string} exchange "" is the default one @param {string} [key] */
export function publish(vhost, exchange, key = "") {
  /** @type {{name: string, text: string} | null} */
  let file = null;
  const choose = async (/** @type {any} */ event) => {
    const chosen = event.target.files[0];
    file = null;
    if (!chosen) return;
    const bytes = new Uint8Array(await chosen.arrayBuffer());
    let text = "";
    for (let n = 0; n < bytes.length; n += 0x8000) text += String.fromCharCode(...bytes.subarray(n, n + 0x8000));
    file = { name: chosen.name, text: btoa(text) };
    note(`${chosen.name}: ${bytes.length} octets will be the body`);
  };
  act({
    title: exchange ? `Publish to ${exchange}` : `Publish to queue ${key}`, verb: "Publish",
    text: html`Mandatory and confirmed: you are told whether a queue took it. <label>Body from a file: <input type="file" onChange=${choose} /></label>`,
    fields: [
      { name: "key", label: "Routing key", value: key },
      { name: "persistent", label: "Persistent: it outlives a restart in a durable queue", type: "checkbox", value: true },
      { name: "headers", label: "Headers", type: "json" },
      { name: "properties", label: "Properties", type: "json", hint: 'for example {"content_type": "application/json", "message_id": "4711", "expiration": "60000"}' },
      { name: "body", label: "Body", type: "textarea" },
    ],
    action: v => {
      const properties = { ...v.properties, ...(v.persistent ? { delivery_mode: 2 } : {}), ...(Object.keys(v.headers).length ? { headers: v.headers } : {}) };
      const words = Object.entries(v.headers).map(([name, value]) => typeof value === "string" ? sh` -H ${`${name}=${value}`}` : sh` -H ${`${name}:=${JSON.stringify(value)}`}`)
        .concat(Object.entries(v.properties).map(([name, value]) => sh` -P ${`${name}=${value}`}`)).join("");
      return { method: "POST", path: at`exchanges/${vhost}/${exchangeInPath(exchange)}/publish`,
        body: { routing_key: v.key, properties, payload: file ? file.text : v.body, payload_encoding: file ? "base64" : "string" },
        warren: sh`warren publish ${v.key} ${file ? "-" : v.body}` + (exchange ? sh` -e ${exchange}` : "") + words + (v.persistent ? " --persistent" : "") + " --mandatory --confirm" + inVhost(vhost) + (file ? sh` < ${file.name}` : ""), ...(file ? { payload: file.name } : {}) };
    },
    done: answer => answer.routed ? "published: a queue took it" : "published, but no queue took it",
  });
}
