// Questions to the server that this page is from: the newest one only, with the key where one is asked.

const KEY = "glassformer-key"; // kept until the tab is closed

export function createAsker() {
  let running = null;
  const headers = () => {
    const key = sessionStorage.getItem(KEY);
    return key ? { Authorization: `Bearer ${key}` } : {};
  };
  return {
    get: (path) => answered(fetch(path, { headers: headers() })),
    hasKey: () => Boolean(sessionStorage.getItem(KEY)),
    useKey: (key) => (key ? sessionStorage.setItem(KEY, key) : sessionStorage.removeItem(KEY)),
    stop: () => running?.abort(),
    translate(question) {
      running?.abort(); // the server notices, and leaves what it has not begun
      running = new AbortController();
      return answered(
        fetch("api/v1/translate", {
          method: "POST",
          headers: { ...headers(), "Content-Type": "application/json" },
          body: JSON.stringify(question),
          signal: running.signal,
        }),
      );
    },
  };
}

async function answered(asked) {
  let response;
  try {
    response = await asked;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer: is it still running?");
  }
  const said = await response.json().catch(() => null);
  if (response.ok && said !== null) return said;
  const error = new Error(said?.error ?? `The server answered ${response.status}.`);
  error.key = /API key/.test(error.message);
  throw error;
}
