// Shows the queues to whoever logs in, and keeps the figures fresh.
const at = id => document.getElementById(id);
let credentials = sessionStorage.getItem("credentials");
async function show() {
  if (!credentials) return;
  const options = { headers: { authorization: "Basic " + credentials } };
  const columns = "name,vhost,messages_ready,messages_unacknowledged,messages,consumers";
  const answers = await Promise.all([
    fetch("api/queues?page=1&page_size=500&sort=messages&sort_reverse=true&columns=" + columns, options),
    fetch("api/overview?columns=object_totals,queue_totals", options)]);
  if (!answers[0].ok) {
    credentials = null; sessionStorage.removeItem("credentials");
    at("problem").textContent = (await answers[0].json()).reason; at("login").hidden = false; return;
  }
  sessionStorage.setItem("credentials", credentials);
  const queues = await answers[0].json(), overview = await answers[1].json();
  at("login").hidden = true; at("table").hidden = false;
  at("connections").textContent = overview.object_totals.connections;
  at("queues").textContent = overview.object_totals.queues;
  at("messages").textContent = overview.queue_totals.messages ?? 0;
  at("rows").replaceChildren(...queues.items.map(queue => {
    const row = document.createElement("tr");
    for (const key of columns.split(",").map(name => queue[name] ?? 0)) {
      const cell = document.createElement("td"); cell.textContent = key; row.append(cell);
    }
    return row;
  }));
  setTimeout(show, 5000);
}
at("login").addEventListener("submit", event => {
  event.preventDefault();
  const bytes = new TextEncoder().encode(at("user").value + ":" + at("password").value);
  credentials = btoa(String.fromCharCode(...bytes)); show();
});
show();
