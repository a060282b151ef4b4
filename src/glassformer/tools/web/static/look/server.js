// Requests to this page's server, with the key if somebody has given one. In a file that holds its
// translator, engine/local.js stands in the place of this module.

export const served = true;

const KEY = "glassformer-key"; // the browser keeps it until the tab closes

export const hasKey = () => Boolean(sessionStorage.getItem(KEY));

export function storeKey(key) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

// The answer's JSON. The error of a refusal is the server's own sentence.
export async function asked(address, { headers = {}, ...request } = {}) {
  const key = sessionStorage.getItem(KEY);
  const authorization = key ? { Authorization: `Bearer ${key}` } : {};
  let answer;
  try {
    answer = await fetch(address, { ...request, headers: { ...headers, ...authorization } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer: is it still running?");
  }
  const content = await answer.json().catch(() => null);
  if (answer.ok && content !== null) return content;
  throw new Error(content?.error ?? `The server answered ${answer.status}.`);
}

export const post = (address, content, more = {}) =>
  asked(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(content),
    ...more,
  });

export const asksForKey = (error) => /API key/.test(error.message);
