// The chat page. Conversations are trees of messages kept in the browser: editing a message or asking again adds a
// branch beside the old one.
"use strict";
const $ = (id) => document.getElementById(id);
const { element } = Markdown;
const SAMPLERS = [
  ["temperature", "Temperature", 0, 5, 0.05], ["top_p", "Top-p", 0, 1, 0.01], ["top_k", "Top-k", 0, 1000, 1],
  ["min_p", "Min-p", 0, 1, 0.01], ["repetition_penalty", "Repetition penalty", 0.5, 2, 0.01],
  ["presence_penalty", "Presence penalty", -2, 2, 0.1], ["frequency_penalty", "Frequency penalty", -2, 2, 0.1],
  ["dry_multiplier", "DRY multiplier", 0, 5, 0.1], ["xtc_probability", "XTC probability", 0, 1, 0.05],
  ["max_tokens", "Longest answer (tokens)", 1, 1000000, 1], ["seed", "Seed", 0, 4294967295, 1], ["reasoning_effort", "Reasoning effort", null],
];

// ---- what is kept

function load(key, otherwise) {
  try { return JSON.parse(localStorage.getItem(key)) ?? otherwise; } catch { return otherwise; }
}
function save(key, value) {
  try { localStorage.setItem(key, JSON.stringify(value)); } catch { announce("The browser's storage is full: this conversation is not kept."); }
}
let chats = load("exl3.chats", []);
let settings = load("exl3.settings", { samplers: {} });
let current = null;
let running = null;   // {controller} while an answer is written
let contextSize = 0;

const newId = () => Math.random().toString(36).slice(2) + Date.now().toString(36);
function keep() { save("exl3.chats", chats); }
function newChat() {
  current = { id: newId(), title: "New conversation", system: settings.system || "", nodes: {}, roots: [], leaf: null };
  showChats(); showMessages(); $("system").value = current.system;
}
function addNode(parent, role, content) {
  const node = { id: newId(), parent, role, content, reasoning: "", children: [] };
  current.nodes[node.id] = node;
  (parent ? current.nodes[parent].children : current.roots).push(node.id);
  current.leaf = node.id;
  if (!chats.includes(current)) chats.unshift(current);
  return node;
}
function path(leaf = current.leaf) {
  const nodes = [];
  for (let id = leaf; id; id = current.nodes[id].parent) nodes.unshift(current.nodes[id]);
  return nodes;
}
const siblings = (node) => (node.parent ? current.nodes[node.parent].children : current.roots);
function deepest(id) {
  while (current.nodes[id].children.length) id = current.nodes[id].children.at(-1);
  return id;
}

// ---- what is shown

function announce(text) { $("speed").textContent = text; }

function showChats() {
  $("chats").replaceChildren(...chats.map((chat) => {
    const open = element("button", "open", chat.title);
    open.title = chat.title;
    if (chat === current) open.setAttribute("aria-current", "true");
    open.onclick = () => { if (!running) { current = chat; $("system").value = chat.system; showChats(); showMessages(); closeMenu(); } };
    const remove = element("button", "", "×");
    remove.setAttribute("aria-label", `Delete ${chat.title}`);
    remove.onclick = () => {
      if (running || !confirm(`Delete “${chat.title}”?`)) return;
      chats = chats.filter((c) => c !== chat);
      keep();
      if (chat === current) newChat(); else showChats();
    };
    return element("li", "", open, remove);
  }));
}

function button(label, name, action) {
  const b = element("button", "", label);
  b.type = "button";
  b.setAttribute("aria-label", name);
  b.onclick = action;
  return b;
}

function reasoningBox(node, open) {
  const box = element("details", "reasoning", element("summary", "", "Reasoning"), element("div", "text"));
  box.open = open;
  box.querySelector(".text").append(Markdown.render(node.reasoning));
  return box;
}

function toolbar(node) {
  const bar = element("div", "tools");
  const all = siblings(node), at = all.indexOf(node.id);
  if (all.length > 1) {
    const go = (i) => () => { if (!running) { current.leaf = deepest(all[i]); keep(); showMessages(); } };
    const back = button("‹", "Earlier version", go(at - 1)), next = button("›", "Later version", go(at + 1));
    back.disabled = at === 0;
    next.disabled = at === all.length - 1;
    bar.append(back, `${at + 1}/${all.length}`, next);
  }
  if (node.role === "user") bar.append(button("Edit", "Edit this message", () => edit(node)));
  else bar.append(button("Again", "Answer again", () => answer(node.parent)));
  bar.append(button("Copy", "Copy this message", () => navigator.clipboard.writeText(node.content)));
  if (node.usage) bar.append(element("span", "", node.usage));
  return bar;
}

function messageBox(node) {
  const box = element("article", `message ${node.role}`);
  box.dataset.id = node.id;
  box.append(element("div", "who", node.role === "user" ? "You" : "Answer"));
  fill(box, node, false);
  return box;
}

function fill(box, node, streaming) {
  const open = box.querySelector("details.reasoning")?.open ?? false;
  box.querySelectorAll(".body, details.reasoning, .tools, .error").forEach((n) => n.remove());
  if (node.reasoning) box.append(reasoningBox(node, open));
  box.append(element("div", "body", Markdown.render(node.content)));
  if (node.error) {
    const error = element("p", "error", node.error);
    error.setAttribute("role", "alert");
    box.append(error);
  }
  if (!streaming) box.append(toolbar(node));
}

function showMessages() {
  const nodes = path();
  $("log").replaceChildren(...(nodes.length ? nodes.map(messageBox) : [element("p", "empty", "Write a message to begin.")]));
  $("log").scrollTop = $("log").scrollHeight;
  const last = nodes.findLast((n) => n.total);
  showContext(last ? last.total : 0);
}

function showContext(tokens) {
  $("context").max = contextSize || 1;
  $("context").value = tokens;
  $("context-text").textContent = contextSize ? `${tokens} / ${contextSize}` : `${tokens}`;
}

function edit(node) {
  if (running) return;
  const box = document.querySelector(`[data-id="${node.id}"]`);
  const area = element("textarea", "wide");
  area.value = node.content;
  area.rows = Math.min(12, node.content.split("\n").length + 1);
  area.setAttribute("aria-label", "Edit message");
  const send = button("Send", "Send the edited message", () => {
    if (!area.value.trim()) return;
    answer(addNode(node.parent, "user", area.value).id);
  });
  box.querySelector(".body").replaceChildren(area, send, button("Cancel", "Keep the message", showMessages));
  area.focus();
}

// ---- talking with the server

function headers() {
  const h = { "Content-Type": "application/json" };
  if ($("key").value) h.Authorization = `Bearer ${$("key").value}`;
  return h;
}

function requestBody(parent) {
  const messages = path(parent).map((n) => ({ role: n.role, content: n.content }));
  if ($("system").value.trim()) messages.unshift({ role: "system", content: $("system").value });
  return { messages, stream: true, stream_options: { include_usage: true }, ...settings.samplers };
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const lines = text.split("\n");
    text = lines.pop();
    for (const line of lines) if (line.startsWith("data: ") && line !== "data: [DONE]") yield JSON.parse(line.slice(6));
  }
}

async function answer(parent) {
  if (running) return;
  current.system = $("system").value;
  const node = addNode(parent, "assistant", "");
  keep(); showChats(); showMessages();
  const box = document.querySelector(`[data-id="${node.id}"]`);
  running = { controller: new AbortController() };
  setBusy(true);
  let tokens = 0, begun = 0, pending = false;
  const paint = () => {
    pending = false;
    if (!running) return;
    const log = $("log"), atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
    fill(box, node, true);
    if (atEnd) log.scrollTop = log.scrollHeight;
  };
  try {
    const response = await fetch("v1/chat/completions", { method: "POST", headers: headers(), body: JSON.stringify(requestBody(parent)), signal: running.controller.signal });
    if (!response.ok) throw new Error((await response.json().catch(() => null))?.error?.message ?? `The server answered ${response.status}.`);
    for await (const event of events(response)) {
      if (event.error) throw new Error(event.error.message);
      const delta = event.choices?.[0]?.delta;
      if (delta?.content || delta?.reasoning_content) {
        node.content += delta.content ?? "";
        node.reasoning += delta.reasoning_content ?? "";
        begun ||= performance.now();
        tokens++;
        const seconds = (performance.now() - begun) / 1000;
        if (seconds > 0.3) announce(`${(tokens / seconds).toFixed(1)} tokens/s`);
        if (!pending) { pending = true; setTimeout(() => requestAnimationFrame(paint), 40); }
      }
      if (event.usage) {
        node.total = event.usage.total_tokens;
        const rate = event.usage.completion_tokens_per_sec;
        node.usage = `${event.usage.completion_tokens} tokens` + (rate ? `, ${rate.toFixed(1)} tokens/s` : "");
        if (rate) announce(`${rate.toFixed(1)} tokens/s`);
      }
    }
  } catch (e) {
    if (e.name !== "AbortError") node.error = e.message;
  }
  running = null;
  setBusy(false);
  if (current.title === "New conversation") current.title = path()[0].content.slice(0, 60);
  keep(); showChats(); showMessages();
  $("prompt").focus();
}

function setBusy(busy) {
  $("send").hidden = busy;
  $("stop").hidden = !busy;
  $("log").setAttribute("aria-busy", String(busy));
}

async function showModel() {
  try {
    const response = await fetch("v1/models", { headers: headers() });
    const model = response.ok ? (await response.json()).data.find((m) => m.max_model_len) : null;
    $("model").textContent = model ? model.id : response.status === 401 ? "A key is needed" : "No model is loaded";
    contextSize = model?.max_model_len ?? 0;
  } catch {
    $("model").textContent = "The server does not answer";
  }
  if (current) showMessages();
}

// ---- settings

function showSamplers() {
  $("samplers").replaceChildren(...SAMPLERS.map(([name, label, least, greatest, step]) => {
    const input = element("input");
    input.id = `s-${name}`;
    input.placeholder = "model's own";
    if (least !== null) Object.assign(input, { type: "number", min: least, max: greatest, step });
    input.value = settings.samplers[name] ?? "";
    input.onchange = () => {
      if (input.value === "") delete settings.samplers[name];
      else settings.samplers[name] = least === null ? input.value : Number(input.value);
      save("exl3.settings", settings);
    };
    return element("label", "", label, input);
  }));
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  settings.theme = theme;
  save("exl3.settings", settings);
}
function closeMenu() { $("sidebar").classList.remove("shown"); $("menu").setAttribute("aria-expanded", "false"); }

$("theme").onclick = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
$("new-chat").onclick = () => { if (!running) { newChat(); closeMenu(); $("prompt").focus(); } };
$("menu").onclick = () => $("menu").setAttribute("aria-expanded", String($("sidebar").classList.toggle("shown")));
$("settings-button").onclick = () => {
  $("settings").hidden = !$("settings").hidden;
  $("settings-button").setAttribute("aria-expanded", String(!$("settings").hidden));
};
$("reset-samplers").onclick = () => { settings.samplers = {}; save("exl3.settings", settings); showSamplers(); };
$("system").onchange = () => { settings.system = $("system").value; save("exl3.settings", settings); };
$("key").value = sessionStorage.getItem("exl3.key") ?? "";
$("key").onchange = () => { sessionStorage.setItem("exl3.key", $("key").value); showModel(); };
$("stop").onclick = () => running?.controller.abort();
$("form").onsubmit = (e) => {
  e.preventDefault();
  const text = $("prompt").value;
  if (running || !text.trim()) return;
  $("prompt").value = "";
  answer(addNode(current.leaf, "user", text).id);
};
$("prompt").onkeydown = (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); $("form").requestSubmit(); }
};
document.onkeydown = (e) => { if (e.key === "Escape") { closeMenu(); running?.controller.abort(); } };

setTheme(settings.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
showSamplers();
newChat();
showModel();
