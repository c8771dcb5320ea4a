// Numbers, sizes and times for people, in the reader's zone and language.

const whole = new Intl.NumberFormat();
const moments = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false,
});

/** @param {number | null | undefined} value */
export const number = value => value === null || value === undefined ? "–" : whole.format(value);

/** @param {number} count @param {string} word as it is for one */
export const counted = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;

/** @param {number | null | undefined} value */
export function short(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return trimmed(value / 1e9) + "G";
  if (size >= 1e6) return trimmed(value / 1e6) + "M";
  if (size >= 1e4) return trimmed(value / 1e3) + "k";
  return whole.format(Number.isInteger(value) ? value : Number(value.toFixed(size < 10 ? 1 : 0)));
}

/** @param {number} value */
const trimmed = value => value.toFixed(Math.abs(value) < 10 ? 1 : 0).replace(/\.0$/, "");

/** @param {number | null | undefined} value */
export const rate = value => value === null || value === undefined ? "–" : `${short(value)}/s`;

/** @param {number | null | undefined} value */
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let n = 0;
  let size = value;
  while (Math.abs(size) >= 1024 && n < units.length - 1) { size /= 1024; n++; }
  return `${n ? trimmed(size) : size} ${units[n]}`;
}

/** @param {number | null | undefined} ms */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  const s = Math.abs(ms) / 1000;
  if (s < 1) return `${Math.round(Math.abs(ms))} ms`;
  if (s < 60) return `${trimmed(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

/** @param {number | string | null | undefined} value milliseconds since 1970, or ISO 8601 */
export function time(value) {
  if (value === null || value === undefined || value === "") return "–";
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? String(value) : moments.format(date);
}

/** @param {any} value */
export const pretty = value => JSON.stringify(value, null, 2);

/** A body as people read it: JSON is laid out.
 * @param {string} text */
export function laidOut(text) {
  try {
    const found = JSON.parse(text);
    if (typeof found === "object" && found !== null) return pretty(found);
  } catch { /* it is no JSON */ }
  return text;
}

/** Octets of text or base64 as a file in the reader's downloads.
 * @param {string} name @param {string} payload @param {string} encoding */
export function download(name, payload, encoding) {
  saveFile(name, new Blob([encoding === "base64" ? octets(payload) : payload], { type: "application/octet-stream" }));
}

/** @param {string} base64 */
export const octets = base64 => Uint8Array.from(atob(base64), one => one.charCodeAt(0));

/** Octets as people read them: 16 a line, with those that are characters beside them.
 * @param {Uint8Array<ArrayBuffer>} all */
export function dumped(all) {
  const lines = [];
  for (let at = 0; at < all.length; at += 16) {
    const part = [...all.subarray(at, at + 16)];
    const text = part.map(one => one > 31 && one < 127 ? String.fromCharCode(one) : "·").join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${part.map(one => one.toString(16).padStart(2, "0")).join(" ").padEnd(47)}  ${text}`);
  }
  return lines.join("\n");
}

/** @param {string} name @param {Blob} content */
export function saveFile(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
