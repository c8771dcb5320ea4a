// Preact and htm under one name: html`<p>${text}</p>`. What stands in ${} is text or nodes, never markup.
import { h, render, Fragment } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);
export { h, render, Fragment };
export { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback } from "./vendor/hooks.js";
