// The log-in: the console's own form, never the browser's box.
import { logIn } from "./api.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { forget } from "./live.js";

export function Login() {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const form = useRef(/** @type {any} */ (null));
  useEffect(() => { form.current.username.focus(); forget(); }, []);
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    try {
      await logIn(form.current.username.value, form.current.password.value);
    } catch (error) {
      setProblem(/** @type {Error} */ (error).message);
      setBusy(false);
      form.current.password.select();
    }
  };
  return html`<main class="login"><form ref=${form} onSubmit=${submit}>
    <img src="console/warren.svg" alt="" width="56" height="56" /><h1>Warren</h1>
    <div class="field"><label for="username">User</label><input id="username" name="username" autocomplete="username" required autocapitalize="none" /></div>
    <div class="field"><label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" required /></div>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <button class="main" disabled=${busy}>Log in</button></form></main>`;
}
