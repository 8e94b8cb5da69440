"use strict";
// Everything that is shown goes through textContent: what servers say must not become code.

const secret = document.getElementById("secret");
const operations = document.getElementById("operations");

function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function headers(hasBody) {
  const sent = {};
  if (hasBody) sent["Content-Type"] = "application/json";
  if (secret.value) sent["Authorization"] = "Bearer " + secret.value;
  return sent;
}

function sample(schema) {
  const value = {};
  for (const [name, each] of Object.entries(schema.properties ?? {})) {
    if ((schema.required ?? []).includes(name)) value[name] = each.examples?.[0] ?? "";
  }
  return JSON.stringify(value, null, 2);
}

function field(parameter) {
  const input = element("input");
  input.value = parameter.schema.examples?.[0] ?? "";
  input.placeholder = String(parameter.schema.default ?? "");
  const name = element("span", parameter.name + (parameter.required ? " *" : ""));
  name.append(element("small", [parameter.schema.type ?? "one of " + parameter.schema.enum].flat().join(" or ")));
  return { input, label: element("label", "", name, input), parameter };
}

async function send(path, method, fields, body, shown) {
  const query = new URLSearchParams();
  for (const { input, parameter } of fields) {
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    else if (input.value) query.set(parameter.name, input.value);
  }
  const address = query.size ? `${path}?${query}` : path;
  shown.textContent = "…";
  try {
    const answer = await fetch(address, { method, headers: headers(body !== null), body: body?.value });
    const text = await answer.text();
    let pretty = text;
    try { pretty = JSON.stringify(JSON.parse(text), null, 2); } catch { /* plain text */ }
    shown.textContent = `${answer.status} ${method} ${address}\n\n${pretty}`;
  } catch (error) {
    shown.textContent = String(error);
  }
}

function form(path, method, operation) {
  const details = element("details", "", element("summary", "", element("code", `${method} ${path}`), operation.summary));
  const fields = (operation.parameters ?? []).map(field);
  const schema = operation.requestBody?.content["application/json"].schema;
  const body = schema ? element("textarea") : null;
  if (body) body.value = sample(schema);
  const button = element("button", "Send");
  const shown = element("pre");
  button.addEventListener("click", () => send(path, method, fields, body, shown));
  details.append(...fields.map((each) => each.label), ...(body ? [body] : []), button, shown);
  return details;
}

async function load() {
  const answer = await fetch("/openapi.json", { headers: headers(false) });
  if (!answer.ok) {
    operations.textContent = (await answer.json()).error.message;
    return;
  }
  const groups = new Map();
  for (const [path, methods] of Object.entries((await answer.json()).paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(form(path, method.toUpperCase(), operation));
    }
  }
  operations.replaceChildren(...[...groups].flatMap(([tag, forms]) => [element("h2", tag), ...forms]));
}

secret.addEventListener("change", load);
load();
